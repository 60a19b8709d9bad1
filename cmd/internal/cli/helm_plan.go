package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-ssa/tenure/cmd/internal/helm"
	"github.com/tenure-ssa/tenure/cmd/internal/process"
	"github.com/tenure-ssa/tenure/cmd/internal/view"
	"github.com/tenure-ssa/tenure/fieldmanager/plans"
	"github.com/tenure-ssa/tenure/internal/planning"
	"github.com/tenure-ssa/tenure/internal/planning/place"
	"github.com/tenure-ssa/tenure/internal/planning/releases"
	"github.com/tenure-ssa/tenure/internal/printable"
)

// helmPlan is the plan of an upgrade or a rollback.
type helmPlan struct {
	releases.Operation
	history releases.History
	deleted []*place.Target // Helm deletes these
	left    []*place.Target // from failed revisions: this command deletes these, because Helm does not
	failed  []planning.Document
}

// pruned returns all objects that Helm or this command deletes.
func (u *helmPlan) pruned() (out []planning.Pruned) {
	for _, t := range slices.Concat(u.deleted, u.left) {
		out = append(out, planning.AppliedFirst(t, u.Manager))
	}
	return out
}

// plan shows what an upgrade would do.
func (r *helmRun) plan(ctx context.Context) error {
	return r.planUpgrade(ctx, func(_ *helmPlan, status int) error { return exitWith(status) })
}

// planUpgrade renders the chart, and shows what the upgrade would do.
func (r *helmRun) planUpgrade(ctx context.Context, do func(u *helmPlan, status int) error) error {
	shown, err := r.helm.Render(ctx, r.given)
	if err != nil {
		return err
	}
	rendered := time.Now()
	return r.planIn(ctx, shown, func(u *helmPlan) (err error) {
		if u.deleted, err = r.removed(ctx, u, u.history.Base(), u.Removed); err != nil {
			return err
		}
		time.Sleep(time.Until(rendered.Add(time.Second))) // so that values made from the current time differ
		again, err := r.helm.Render(ctx, r.given)
		if err == nil {
			err = shown.Vary(again.Templates)
		}
		if err != nil {
			return fmt.Errorf("another rendering of the chart: %w", err)
		}
		status, err := r.show(u)
		if err != nil {
			return err
		}
		r.noteDefinitions(ctx, u)
		return do(u, status)
	})
}

// noteDefinitions prints which CRDs in the chart's folder crds/ differ from the CRDs in the cluster.
func (r *helmRun) noteDefinitions(ctx context.Context, u *helmPlan) {
	docs := (&releases.Rendering{Templates: u.Definitions}).Documents()
	all, _ := planning.Documents(ctx, u.Place, docs, planning.Options{
		Manager: u.Manager, Force: true, Concurrency: u.Concurrency, Now: u.Now,
	})
	for i := range all {
		d, says := &all[i], ""
		switch {
		case d.Err != nil:
			r.env.NoteUnread(fmt.Errorf("%s: %w", &u.Definitions[i], d.Err))
		case d.Desired.Object == nil && u.Version == 1:
			says = "helm creates it with the first revision, unless --skip-crds is given"
		case d.Desired.Object == nil:
			says = "does not exist, and helm upgrade does not create it"
		case d.Outcome == plans.Changed:
			for change := range d.Changes() {
				says = fmt.Sprintf("%s differs in the cluster, and helm upgrade does not change it", change.Path)
				break
			}
		}
		if says != "" {
			fmt.Fprintf(r.env.Stderr, "note: %s: %s\n", printable.Text(u.Definitions[i].String()), printable.Text(says))
		}
	}
}

// planIn plans templates in the cluster.
func (r *helmRun) planIn(ctx context.Context, shown *releases.Rendering, do func(*helmPlan) error) error {
	if err := r.cmd.Flags().Set("namespace", shown.Namespace); err != nil {
		return err
	}
	return r.withPlace(process.NoStore, func(p place.Place) (err error) {
		u := &helmPlan{Operation: releases.Operation{
			Rendering: shown, Place: p, Manager: r.manager, Now: r.env.Now, Concurrency: r.concurrency,
		}}
		if r.createsNamespace {
			place.ClusterOf(p).Creates(shown.Namespace)
		}
		if u.history, err = r.helm.History(ctx, shown.Release); err != nil {
			return err
		}
		u.Planned, u.failed = r.planDocuments(p, shown.Documents())
		return do(u)
	})
}

// removed returns the objects of a revision that would be deleted. The argument find selects them; it is the
// operation's method Removed or Left. If any template could not be planned, the objects to delete are not known, and
// removed returns none.
func (r *helmRun) removed(
	ctx context.Context, u *helmPlan, revision int,
	find func(context.Context, []releases.Template, ...*place.Target) ([]*place.Target, error),
) ([]*place.Target, error) {
	if len(u.failed) > 0 || revision == 0 {
		return nil, nil
	}
	stored, err := r.helm.Stored(ctx, u.Release, revision, false)
	if err != nil {
		return nil, err
	}
	out, unread := find(ctx, stored, slices.Concat(u.deleted, u.left)...)
	if unread != nil {
		r.env.NoteUnread(unread)
	}
	return out, nil
}

// show prints the plan.
func (r *helmRun) show(u *helmPlan) (status int, err error) {
	if err := r.writePlans(u.Planned, u.pruned(), u.failed); err != nil {
		return 0, err
	}
	for i, name := range u.Varying() {
		if i == 0 {
			fmt.Fprintln(r.env.Stdout, "values that differ in each rendering; an upgrade applies the ones that its plan showed:")
		}
		fmt.Fprintf(r.env.Stdout, "  %s\n", printable.Text(name))
	}
	worst := plans.Unchanged
	for i := range u.Planned {
		worst = max(worst, u.Planned[i].Outcome)
	}
	return r.exitStatus(worst, len(u.pruned()), len(u.failed)), nil
}

func (r *helmRun) upgrade(ctx context.Context) error {
	if err := r.checkConfirmable(); err != nil {
		return err
	}
	return r.planUpgrade(ctx, func(u *helmPlan, status int) error {
		if r.dryRun || status > statusChanges {
			return exitWith(status)
		}
		if err := r.confirm.Ask(r.env, fmt.Sprintf("Upgrade %s in namespace %s?", u.Name, u.Namespace)); err != nil {
			return err
		}
		args, rollsBack := slices.Clone(r.given), r.rollsBack && u.history.Base() > 0
		switch {
		case rollsBack:
			args = append([]string{"--wait"}, args...) // --rollback-on-failure implies it; a later --wait=… wins
		case r.rollsBack:
			args = append(args, "--rollback-on-failure") // there is no revision to roll back to: Helm uninstalls
		}
		err := r.write(ctx, u, func(replace helm.Replace) error {
			return r.helm.Upgrade(ctx, args, func(templates []releases.Template) ([]releases.Template, error) {
				if err := u.Check(templates); err != nil {
					return nil, fmt.Errorf("the chart renders differently now: %w", err)
				}
				return replace(templates)
			})
		})
		if err == nil || !u.IsBegun() || !rollsBack {
			return err
		}
		view.Report(r.env, err)
		good := u.history.Last("deployed", "superseded")
		fmt.Fprintf(r.env.Stderr, "the upgrade failed: rolling back to revision %d\n", good)
		r.confirm.Yes = true
		if err := r.rollbackTo(ctx, u.Release, good, nil); err != nil {
			return fmt.Errorf("not rolled back: %w", err)
		}
		return fmt.Errorf("the upgrade of %s failed, and was rolled back to revision %d", u.Name, good)
	})
}

func (r *helmRun) checkConfirmable() error {
	if r.dryRun {
		return nil
	}
	return r.confirm.CheckPossible(r.env)
}

func (r *helmRun) rollback(ctx context.Context) error {
	if err := r.checkConfirmable(); err != nil {
		return err
	}
	if len(r.given) == 0 || strings.HasPrefix(r.given[0], "-") {
		return errors.New("expected a release before the flags")
	}
	newest, err := r.helm.Release(ctx, r.given[0])
	if err != nil {
		return err
	}
	revision, args := newest.Version-1, r.given[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if revision, err = strconv.Atoi(args[0]); err != nil || revision < 0 {
			return fmt.Errorf("expected a revision, got %q", args[0])
		}
		revision, args = cmp.Or(revision, newest.Version-1), args[1:]
	}
	return r.rollbackTo(ctx, newest, revision, args)
}

// rollbackTo applies the manifests that Helm has stored for a revision.
func (r *helmRun) rollbackTo(ctx context.Context, release releases.Release, revision int, args []string) (err error) {
	shown := &releases.Rendering{Release: release}
	if shown.Templates, err = r.helm.Stored(ctx, release, revision, true); err != nil {
		return err
	}
	return r.planIn(ctx, shown, func(u *helmPlan) (err error) {
		if u.deleted, err = r.removed(ctx, u, u.history.Base(), u.Removed); err != nil {
			return err
		}
		for _, since := range u.history.SinceGood() {
			left, err := r.removed(ctx, u, since, u.Left)
			if err != nil {
				return err
			}
			u.left = append(u.left, left...)
		}
		status, err := r.show(u)
		if err != nil {
			return err
		}
		for _, t := range u.Templates {
			if strings.Contains(t.Hook(), "rollback") {
				fmt.Fprintf(r.env.Stdout, "no hooks run; helm rollback would run %s (%s)\n", printable.Text(t.String()), t.Hook())
			}
		}
		if r.dryRun || status > statusChanges {
			return exitWith(status)
		}
		question := fmt.Sprintf("Roll %s in namespace %s back to revision %d?", u.Name, u.Namespace, revision)
		if err := r.confirm.Ask(r.env, question); err != nil {
			return err
		}
		err = r.write(ctx, u, func(replace helm.Replace) error {
			return r.helm.Restore(ctx, u.Release, revision, args, replace)
		})
		for i := 0; err == nil && i < len(u.left); i++ {
			err = deleteTarget(r.env, u.Place, u.left[i])
		}
		return err
	})
}

// write has Helm apply the plan that was shown, but only if no object has changed since then. Immediately before Helm
// applies, write moves fields to Helm's manager.
func (r *helmRun) write(ctx context.Context, u *helmPlan, run func(helm.Replace) error) error {
	err := run(func([]releases.Template) ([]releases.Template, error) {
		if current, err := r.helm.History(ctx, u.Release); err != nil || current.Last() != u.history.Last() {
			return nil, cmp.Or(err, errors.New("the release has another revision now: run the command again"))
		}
		intents, err := u.Begin(ctx, slices.Concat(u.deleted, u.left)...)
		for _, move := range u.Moves {
			fmt.Fprintln(r.env.Stdout, move)
		}
		return intents, err
	})
	return u.Explain(ctx, err)
}
