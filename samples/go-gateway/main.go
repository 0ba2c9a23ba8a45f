// A gateway that names each prompt's blocks and sends it to the engine that has most of them. Engines are asked on
// this machine only. GET /meter shows where the time to first token goes.
//
//	go run . -engines http://127.0.0.1:8001,http://127.0.0.1:8002      go run . -test
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"

	"kvartet"
)

// loopback accepts only engines on this machine.
func loopback(engine string) error {
	parsed, err := url.Parse(engine)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(parsed.Hostname()); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("engine %q is not on this machine", engine)
	}
	return nil
}

// listen serves a handler on a loopback address.
func listen(address string, handler http.Handler) string {
	listener, err := net.Listen("tcp", address)
	check(err)
	go http.Serve(listener, handler)
	return "http://" + listener.Addr().String()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	port := flag.Int("port", 0, "loopback port; 0 takes a free one")
	engines := flag.String("engines", "", "URLs of engines on this machine, separated by commas")
	test := flag.Bool("test", false, "send a few prompts to two toy engines, show the meter, and stop")
	flag.Parse()
	runtime, err := kvartet.NewRuntime(nil)
	check(err)
	defer runtime.Close()
	options := kvartet.DefaultModelOptions()
	options.ID, options.Layers, options.KVHeads, options.KDim, options.VDim = []byte("digest of the weights"), 4, 2, 32, 32
	model, err := kvartet.NewModel(options)
	check(err)
	defer model.Close()
	meter, err := kvartet.NewMeter(runtime)
	check(err)
	defer meter.Close()
	g := &gateway{model: model, meter: meter, engines: strings.Split(*engines, ","), home: map[kvartet.Key]int{}}
	if *test {
		toy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "token") })
		g.engines = []string{listen("127.0.0.1:0", toy), listen("127.0.0.1:0", toy)}
	}
	for _, engine := range g.engines {
		check(loopback(engine))
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/complete", g.complete)
	routes.HandleFunc("/meter", g.showMeter)
	address := listen(fmt.Sprintf("127.0.0.1:%d", *port), routes)
	fmt.Println("gateway on", address)
	if !*test {
		select {}
	}
	tryOut(address)
}
