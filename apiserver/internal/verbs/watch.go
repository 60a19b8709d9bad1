package verbs

func (c *Call) watch() error { return notImplemented(c.Resource, "watch") }
