package store

// OpenReadOnly is openReadOnly: root may write every file.
var OpenReadOnly = openReadOnly
