//go:build tools

// Package tools names the programs that the lab builds, so that `go mod tidy` keeps
// what they need in go.mod and go.sum.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/etcdutl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
