package gateway

import "exchange/gateway/edge"

// Public returns the public listener, for tests of the rooms of gateway.
func (g *Gateway) Public() *edge.PublicListener { return g.public }

// Operators returns the operator's listener, for tests of the rooms of gateway.
func (g *Gateway) Operators() *edge.OperatorListener { return g.operators }

// Watchers returns the listener of monitoring, for tests of the rooms of gateway.
func (g *Gateway) Watchers() *edge.MetricsListener { return g.watchers }
