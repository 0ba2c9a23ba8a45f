/* Two processes over TCP: the child makes KV, encodes it and serves the frame; the parent pulls it by its
 * key, checks and decodes it into its own memory. Run without arguments. */
#include <sys/wait.h>
#include <unistd.h>

#include "sample.h"

static uint8_t frame[1 << 20];

int main(void) {
  int to_parent[2], to_child[2];
  if (pipe(to_parent) != 0 || pipe(to_child) != 0) return 1;
  const pid_t child = fork(); /* before there is a runtime: threads do not survive a fork */
  if (child < 0) return 1;

  /* Both sides know model, namespace and prompt, and so the key. One block holds the whole prompt. */
  kvt_runtime_t runtime;
  Check(kvt_runtime_create(NULL, &runtime), "runtime");
  kvt_model_t model = NewModel();
  kvt_codec_t codec = NewCodec(model, "int8");
  int32_t tokens[TOKENS] = {0};
  kvt_key_options_t naming;
  kvt_key_options_init(&naming, sizeof naming);
  naming.block_tokens = TOKENS;
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = TOKENS;
  Check(kvt_keys_compute(model, &naming, tokens, TOKENS, spec.key, sizeof spec.key, NULL), "key");
  Check(kvt_namespace_digest(NULL, 0, NULL, 0, spec.namespace_digest), "namespace");
  kvt_node_options_t options;
  kvt_node_options_init(&options, sizeof options);
  options.model = model;
  memcpy(options.namespace_digest, spec.namespace_digest, sizeof spec.namespace_digest);

  static kv_t kv;
  kvt_node_t node;
  kvt_cache_t cache = 0;
  kvt_status_t result;
  uint64_t operation, length = 0;
  char url[256] = "tcp://127.0.0.1:0"; /* port 0: a free one */
  if (child == 0) {
    KvInit(&kv, 0x3c);
    close(to_child[1]); /* so that the parent's end, should it fail, ends the read below */
    size_t size = 0;
    Check(kvt_codec_encode(codec, &kv.view, &spec, frame, sizeof frame, &size, NULL), "encode");
    Check(kvt_cache_open(runtime, "mem:", 4, &cache), "cache");
    Check(kvt_cache_put(cache, spec.key, frame, size), "put");
    options.listen = url;
    options.listen_len = strlen(url);
    Check(kvt_node_open(runtime, &options, &node), "listen");
    Check(kvt_node_serve(node, cache), "serve");
    memset(url, 0, sizeof url);
    Check(kvt_node_url(node, url, sizeof url - 1, &size), "url");
    if (write(to_parent[1], url, sizeof url) != sizeof url) return 1;
    if (read(to_child[0], url, 1) != 1) return 1; /* until the parent has the frame */
  } else {
    kvt_peer_t peer;
    KvInit(&kv, 0);
    close(to_parent[1]); /* so that the child's end, should it fail, ends the read */
    if (read(to_parent[0], url, sizeof url) != sizeof url) return 1;
    Check(kvt_node_open(runtime, &options, &node), "node");
    Check(kvt_node_connect(node, url, strlen(url), WAIT_MS, &peer), "connect");
    Check(kvt_peer_submit_pull(peer, spec.key, 1, frame, sizeof frame, &length, &result, WAIT_MS, &operation),
          "pull");
    Check(kvt_node_wait(node, operation, WAIT_MS, NULL), "pull");
    Check(kvt_codec_decode(codec, frame, (size_t)length, &spec, &kv.view, NULL), "decode");
    printf("pulled %llu bytes from %s: %zu bytes of KV, first value %02x%02x\n", (unsigned long long)length,
           url, sizeof kv.planes, kv.planes[0][1], kv.planes[0][0]);
    if (write(to_child[1], "x", 1) != 1) return 1;
  }
  kvt_node_destroy(node);
  kvt_cache_destroy(cache);
  kvt_codec_destroy(codec);
  kvt_model_destroy(model);
  kvt_runtime_destroy(runtime);
  int status = 0;
  return child != 0 && (waitpid(child, &status, 0) != child || status != 0);
}
