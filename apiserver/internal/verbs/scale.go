package verbs

func (c *Call) scale() error { return notImplemented(c.Resource, "scale") }
