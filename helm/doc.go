// Package helm decides conflicts by a policy for programs that embed Helm 4's SDK, in place of ForceConflicts. It needs
// no module of Helm: an [Operation] is a postrenderer.PostRenderer by its method Run.
//
//	op, err := helm.New(ctx, helm.Options{Config: config, Release: "shop", Namespace: "shop", Policy: rules})
//	...
//	upgrade := action.NewUpgrade(actions) // or NewInstall
//	upgrade.ServerSideApply, upgrade.PostRenderer = "true", op
//	_, err = upgrade.RunWithContext(ctx, "shop", chart, values)
//	err = op.Finish(err)
//
// Helm renders the chart and calls Run. That is the only moment between a rendering and Helm's first write, so Run does
// all that has to be done by then: it plans the objects, asks the server by dry runs, decides conflicts by the policy,
// and moves what the policy forces to Helm's manager. If Helm applied an object client-side, as Helm 3 does, the
// fields move to server-side apply. Helm applies and stores what Run returns.
//
// # Invariants
//
//   - An Operation is for one run of one action on one release. Helm may call Run once for hooks and once for the other
//     templates (PostRenderStrategySeparate); hooks are returned as they are.
//   - Run writes only after all objects are planned, no conflict is refused, and no object has changed since. If one is
//     refused, its error has the [conflicts.Conflicts], and neither an object nor an owner has changed. With
//     Options.DryRun it writes nothing at all; a dry run of an action needs that, because Helm does not tell Run.
//   - A field that is given up is left out while another manager owns it, and keeps its value and its owners. A shared
//     one has the live value. A forced one has moved, by a write of managed fields alone, which fails if the object has
//     changed. So Helm applies without force: what others take after Run is a conflict.
//   - Finish adds to an error of the action which objects had changed by then.
//
// Set ServerSideApply, and not ForceConflicts. Other post-renderers run before this one. What Helm does not render is
// not planned: the folder crds/, which Helm creates before the first revision is rendered, and the objects that it
// deletes. Helm makes some checks after Run, such as whether an object is another release's. So no field moves of an
// object that is not marked as the release's, unless with TakeOwnership.
//
// # Rollbacks
//
// action.Rollback has no post-renderer: it applies what is stored, with fields that others own by now, and fails. An
// upgrade to the chart and the values of the revision does it, in which the operation returns what is stored in place
// of what is rendered ([Options].Restore):
//
//	revision := ... // a *release.Release of Helm's storage
//	op, err := helm.New(ctx, helm.Options{..., Restore: revision.Manifest})
//	upgrade.ResetValues, upgrade.DisableHooks, upgrade.PostRenderer = true, true, op
//	_, err = upgrade.RunWithContext(ctx, revision.Name, revision.Chart, revision.Config)
//
// That makes a new revision. The command `helm tenure` is built of the same parts.
package helm
