// Package action has the tests of the GitHub Action in this folder. The Action writes the plan of a pull request's
// manifests into a comment, and fails on conflicts. A workflow uses it as a step:
//
//	uses: tenure-ssa/tenure/cmd/action@v0.1.0
//	with: {version: v0.1.0, files: deploy/, field-manager: deployer}
package action
