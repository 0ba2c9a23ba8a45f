// The llama.cpp adapter: an Engine is a model's weights, a Session is one sequence with its own KV cache over
// them.
//
// A full and a draft sequence are two Sessions of one Engine, that is two llama.cpp contexts on one model.
// Each then has its cells in position order whatever the other does, so sums run in the same order as in a
// lone context (bits stay equal), and rolling one back is a removal of its tail. Two sequences in one context
// would interleave their cells and lose both.
//
// Invariant of a Session: its cells are in the order of their positions. Cell i holds position i, for i in
// [0, Length()), until Keep drops some.
// Bits: with flash attention and one thread, decoding a token alone or inside a batch, prefilling in chunks
// that PrefillChunks allows, moving rows by Export and Commit, and truncating all give equal logits; Probe()
// measures whether that holds here. A token decoded by DecodeOne and the same token as the last one of a
// Prefill may differ in the last bits: to compare ways of getting a prompt's KV, prefill or commit all but
// its last token and give that to DecodeOne. Threads: an Engine from any thread; a Session from one thread at
// a time; different Sessions at the same time. Nothing is thrown but std::bad_alloc.
#ifndef KVARTET_TOOLS_ENGINE_ENGINE_H_
#define KVARTET_TOOLS_ENGINE_ENGINE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/captured.h"
#include "engine/kv_blob.h"
#include "engine/plan.h"
#include "engine/result.h"
#include "engine/rope_facts.h"
#include "engine/support.h"
#include "engine/top2.h"

namespace kvt::engine {

struct Geometry {
  std::string architecture;
  std::string description;  // as the engine words it, for example "llama 135M Q4_1"
  KvGeometry kv;            // element type f16
  RopeFacts rope;
  int32_t heads = 0;  // of queries
  int32_t width = 0;  // elements of the residual stream
  int32_t vocab = 0;
  int32_t trained_context = 0;
  int32_t bos = -1;  // -1: the vocabulary has none
  int32_t eos = -1;
  int32_t eot = -1;
  std::array<uint8_t, 32> weights_sha256{};  // of the whole file: use it as model_id
};

struct SessionOptions {
  int32_t context_tokens = 4096;  // rounded up by the engine to a multiple of 256
  int32_t batch = 512;            // most tokens of one Prefill chunk, 128 or more
  int32_t max_rows = 64;          // most tokens of one DecodeBatch
  int32_t threads = 1;
  int32_t capture_every = 0;  // keep queries and residual squares of every n-th position; 0: of none
};

// A chat prompt whose document is an early prefix: prompts with one system text and document share tokens [0,
// document_end).
struct ChatPrompt {
  std::vector<int32_t> tokens;
  int32_t document_end = 0;
  bool templated =
      true;  // false: the model has no template that the engine knows, the texts are joined plainly
};

struct LoadedModel;

class Session {
 public:
  // Called after each chunk with the tokens done and all tokens of this call; false stops the prefill.
  using Progress = std::function<bool(int32_t done, int32_t total)>;

  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The position that the next token gets: the number of tokens in the cache, and of those that Keep dropped.
  int32_t Length() const;
  // Cells that the context has.
  int32_t Capacity() const;

  // Appends tokens in chunks by PrefillChunks, of at most `chunk` tokens (0: the session's batch). Logits(0)
  // is then the last token's row. When it fails or is stopped, the cache is as before. Blocks: yes, for the
  // whole prefill.
  Result<Choice> Prefill(std::span<const int32_t> tokens, int32_t chunk = 0, const Progress& progress = {});

  // Appends one token. Logits(0) is its row.
  Result<Choice> DecodeOne(int32_t token);

  // Appends 1 to max_rows tokens in one batch and gives the choice after each of them. Logits(i) is the row
  // of tokens[i].
  Result<std::vector<Choice>> DecodeBatch(std::span<const int32_t> tokens);

  // The raw logits of a row of the last Prefill, DecodeOne or DecodeBatch; empty when there is no such row.
  // Valid until the next of these calls.
  std::span<const float> Logits(int32_t row) const;

  // Cells that the engine says it holds.
  int32_t Cells() const;

  // From now on nothing is captured of positions before this one.
  void CaptureFrom(int32_t position);

  // What was captured of positions below Length() since the last call. Nothing without capture_every.
  Captured TakeCaptured();

  // Keeps positions [0, length). Refused when Keep dropped position length - 1: the next token follows it.
  Status Truncate(int32_t length);

  // Drops all positions but these, which are held, ascending, and end with Length() - 1. Those that stay keep
  // their positions and rows and move together, so that the engine reads no others: every later token sees
  // only them. When the engine fails, the cache is empty.
  Status Keep(std::span<const int32_t> positions);

  // Copies the rows that are held of positions [begin, end) out of the cache, once.
  // May be called from a Prefill's progress callback, to ship rows while the rest is still computed.
  Result<KvBlob> Export(int32_t begin, int32_t end);

  // The same into a blob that was reserved before (or used before): no memory is touched for the first time.
  Status ExportInto(KvBlob& blob);

  // A buffer for positions [begin, begin + tokens): decode rows straight into its views, then Commit it.
  Result<KvBlob> Reserve(int32_t begin, int32_t tokens) const;

  // Copies the rows of a blob into the cache, once; neither may have gaps. A blob that begins at Length() is
  // appended; one that begins before it replaces the rows there. One that begins after it is refused: rows
  // are loaded in position order, which keeps the cells in that order. When the engine fails half-way, the
  // cache keeps the positions before the blob, and the message says so.
  Status Commit(const KvBlob& blob);

 private:
  friend class Engine;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Engine {
 public:
  // Loads a GGUF file and checks that its cache can be taken out and put back: a state blob that we build
  // from rows must equal the engine's own, byte for byte. Errors: kIo (no such file, not a GGUF, truncated),
  // kUnsupported with the architecture and the field, kEngine with what the engine said. Blocks: yes;
  // reads the file twice (digest, weights). The engine's log goes nowhere; its first error line becomes part
  // of our message.
  static Result<std::unique_ptr<Engine>> Open(const std::string& path);

  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Geometry& geometry() const;
  // The model's file.
  const std::string& path() const;

  // A new empty sequence. It may outlive the Engine.
  Result<std::unique_ptr<Session>> NewSession(const SessionOptions& options) const;

  // @param add_special    Add the begin and end tokens that the model asks for.
  // @param parse_special  Read texts such as "<|im_end|>" as control tokens. Leave it off for text that is
  // not yours.
  Result<std::vector<int32_t>> Tokenize(std::string_view text, bool add_special, bool parse_special) const;

  // The bytes of the tokens; control tokens are written out when `special`. May end inside a UTF-8 character.
  Result<std::string> Detokenize(std::span<const int32_t> tokens, bool special = false) const;

  // System text, then the user's document and question, in the model's chat template, ready for the answer.
  // The texts are never read as control tokens.
  Result<ChatPrompt> Chat(std::string_view system, std::string_view document,
                          std::string_view question) const;

  // Whether generation ends at this token.
  bool IsEnd(int32_t token) const;

 private:
  // The model's chat template around the two texts; empty when the engine knows none. `system` may be null.
  std::string RenderChat(const char* system, const char* user) const;
  bool AddsBos() const;

  explicit Engine(std::shared_ptr<const LoadedModel> model);
  std::shared_ptr<const LoadedModel> model_;
};

}  // namespace kvt::engine

#endif  // KVARTET_TOOLS_ENGINE_ENGINE_H_
