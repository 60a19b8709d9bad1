// Package action holds the tests of the GitHub Action in this folder, which comments the plan of a pull request's
// manifests and fails on conflicts. A step of a workflow uses it:
//
//	uses: tenure-ssa/tenure/cmd/action@v0.1.0
//	with: {version: v0.1.0, files: deploy/, field-manager: deployer}
package action
