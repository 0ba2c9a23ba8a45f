package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
)

// tryOut sends two prompts that share their first 32 tokens, and one that does not, twice; then shows the meter.
func tryOut(address string) {
	shared := make([]int32, 48)
	for i := range shared {
		shared[i] = int32(i)
	}
	longer := append(append([]int32(nil), shared[:32]...), 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912,
		913, 914, 915)
	other := make([]int32, 32)
	for i := 0; i < 2; i++ {
		for _, tokens := range [][]int32{shared, longer, other} {
			packed, err := json.Marshal(prompt{tokens})
			check(err)
			show(http.Post(address+"/complete", "application/json", strings.NewReader(string(packed))))
		}
	}
	show(http.Get(address + "/meter"))
}

func show(answer *http.Response, err error) {
	check(err)
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	check(err)
}
