package fieldmanagertest

// Grammar says how a scenario is written: its steps, and what can be expected of them.
// It is what the package comment says of them.
const Grammar = `The steps:

schema [VERSION…]   the type from here on: kind Thing of group example.dev at
                    the versions (v1), with these properties; one called
                    status makes the subresource
crd                 the type from here on: a CustomResourceDefinition
deduced             the type from here on: deduced from the values, of any kind
live                the object as it is stored, whoever wrote it
apply, update, patch [MANAGER] [force] [version=V] [subresource=S] [agent=A]
                    a write. An update is the whole object; a patch is a JSON
                    merge patch; agent is a User-Agent that names the manager.
                    What is left out of apiVersion, kind and name is filled in.
extract MANAGER [subresource=S]
                    the intent that the manager's entry speaks of
interleave [limit=N] [seed=N]
                    the writes that follow, in every order that keeps each
                    manager's own; the object is then as it was before

What is expected:

want         the whole object as it is then stored; of extract, the intent
unchanged    nothing was written
conflict     message and causes of the Status
error        the error's text
warnings     what the host is told, besides one of the others
orders       of interleave: how many there are, and what they come to

Without a schema, crd or deduced, the object is of the built-in kind that the
first write or live names.
`
