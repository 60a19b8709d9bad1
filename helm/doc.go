// Package helm is for programs that embed Helm 4's SDK. In place of Helm's option ForceConflicts, which takes all
// fields in conflict, a policy decides each conflict. The package does not import Helm: an [Operation] implements
// Helm's interface postrenderer.PostRenderer with its method Run.
//
//	op, err := helm.New(ctx, helm.Options{Config: config, Release: "shop", Namespace: "shop", Policy: rules})
//	...
//	upgrade := action.NewUpgrade(actions) // or NewInstall
//	upgrade.ServerSideApply, upgrade.PostRenderer = "true", op
//	_, err = upgrade.RunWithContext(ctx, "shop", chart, values)
//	err = op.Finish(err)
//
// Helm renders the chart and calls Run. Between Run and Helm's first write, Helm calls no other code of the program.
// Therefore Run does all work that must precede this write: it plans the objects, sends dry runs to the server, decides
// conflicts by the policy, and moves forced fields to Helm's manager. If Helm has applied an object client-side, as
// Helm 3 does, Run migrates the fields to server-side apply. Helm applies and stores the manifests that Run returns.
//
// # Invariants
//
//   - An Operation is for a single run of one action on one release. Helm may call Run twice, once for hooks and once
//     for the other templates (PostRenderStrategySeparate). Run returns hooks unchanged.
//   - Run writes only after all objects are planned, no conflict is refused, and no object has changed since it was
//     planned. If a conflict is refused, the error contains the [conflicts.Conflicts], and neither values nor owners
//     have changed. With Options.DryRun, Run writes nothing. Set DryRun if the action is a dry run, because Helm does
//     not tell Run so.
//   - If the policy gives up a field, Run omits it from the manifest as long as another manager owns it, so the field
//     keeps its value and its owners. For a shared field, the manifest has the live value. Run moves a forced field to
//     Helm's manager, by a write that changes only managed fields and fails if the object has changed. Therefore Helm
//     applies without force, and fields that other managers take after Run cause conflicts.
//   - If the action fails, Finish adds to the action's error which objects had already changed.
//
// Set ServerSideApply, and do not set ForceConflicts. Other post-renderers must run before this one. Objects that Helm
// does not render are not planned: the objects in the folder crds/, which Helm creates before it renders the first
// revision, and objects that Helm deletes. After Run, Helm makes further checks, such as whether an object belongs to
// another release. Run must not move fields of an object that Helm then rejects. So it returns an error if it would
// have to move fields of an object that lacks the labels and annotations of the release. With TakeOwnership, Run moves
// these fields, too.
//
// # Rollbacks
//
// action.Rollback has no post-renderer. It applies the stored manifest, and fails if other managers have changed fields
// in it. Instead, run an upgrade with the chart and the values of the revision to restore, and set [Options].Restore,
// so that the operation returns the stored manifest in place of the rendered one:
//
//	revision := ... // a *release.Release of Helm's storage
//	op, err := helm.New(ctx, helm.Options{..., Restore: revision.Manifest})
//	upgrade.ResetValues, upgrade.DisableHooks, upgrade.PostRenderer = true, true, op
//	_, err = upgrade.RunWithContext(ctx, revision.Name, revision.Chart, revision.Config)
//
// The upgrade makes a new revision. The command `helm tenure` uses the same packages.
package helm
