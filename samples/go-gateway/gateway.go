package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kvartet"
)

// client stays on this machine: no proxy, and no redirect is followed.
var client = http.Client{
	Timeout:       30 * time.Second,
	Transport:     &http.Transport{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type gateway struct {
	model   *kvartet.Model
	meter   *kvartet.Meter
	engines []string
	mu      sync.Mutex
	home    map[kvartet.Key]int // the engine that has a block; guarded by mu
	turn    int                 // guarded by mu
}

type prompt struct{ Tokens []int32 }

// route gives the engine with the longest known prefix of keys (else the next in turn), and its blocks.
func (g *gateway) route(keys []kvartet.Key) (int, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	engine, hits := g.turn%len(g.engines), 0
	for i, key := range keys {
		home, known := g.home[key]
		if !known || (i > 0 && home != engine) {
			break
		}
		engine, hits = home, i+1
	}
	if hits == 0 {
		g.turn++
	}
	for _, key := range keys {
		g.home[key] = engine
	}
	return engine, hits
}

func (g *gateway) complete(w http.ResponseWriter, r *http.Request) {
	var body prompt
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	keys, err := g.model.Keys(body.Tokens, kvartet.KeyOptions{Namespace: []byte(r.Header.Get("X-Tenant"))})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	engine, hits := g.route(keys)
	way := map[bool]string{true: "cache_hit", false: "recompute"}[hits > 0]
	request, err := g.meter.Begin(way)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer request.End()
	request.Part(kvartet.PartPrefill)
	request.Count(kvartet.CounterTokensPrompt, uint64(len(body.Tokens)))
	request.Count(kvartet.CounterBlocksHit, uint64(hits))
	request.Count(kvartet.CounterBlocksMissed, uint64(len(keys)-hits))
	packed, _ := json.Marshal(body)
	answer, err := client.Post(g.engines[engine], "application/json", bytes.NewReader(packed))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	answer.Body.Close()
	request.FirstToken()
	fmt.Fprintf(w, "engine %d, %d of %d blocks\n", engine, hits, len(keys))
}

func (g *gateway) showMeter(w http.ResponseWriter, _ *http.Request) {
	text, err := g.meter.JSON()
	advice, err2 := g.meter.Advice()
	if err != nil || err2 != nil {
		http.Error(w, fmt.Sprint(err, err2), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s\n%s\n", text, advice)
}
