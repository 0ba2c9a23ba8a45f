// Writes the seeds that are made and not written by hand: make_seeds tests/fuzz/corpus. After a change of a
// format.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "codec/profile_frame.h"
#include "codec/profile_rungs.h"
#include "fuzz/small.h"
#include "transfer/wire.h"

namespace {

std::filesystem::path corpus;

void Write(const std::string& target, const std::string& name, absl::string_view bytes) {
  std::filesystem::create_directories(corpus / target);
  std::ofstream file(corpus / target / name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) {
    std::cerr << corpus / target / name << ": cannot be written\n";
    std::exit(1);
  }
}

// The payload's length in two bytes and the header alone, as fuzz_header wants it.
std::string HeaderOf(kvt::Bytes frame) {
  const kvt::FrameHeader header = *kvt::ParseFrame(frame);
  std::string seed;
  kvt::AppendLe<uint16_t>(&seed, static_cast<uint16_t>(header.payload_length));
  return seed + kvt::EncodeHeader(header);
}

void WriteFrame(const std::string& name, kvt::Bytes frame) {
  Write("fuzz_frame", name, kvt::AsText(frame));
  Write("fuzz_header", name, HeaderOf(frame));
}

void WriteMessages() {
  namespace transfer = kvt::transfer;
  kvt::net::Message hello;
  hello.type = kvt::net::MessageType::kHello;
  hello.control = transfer::HelloControl(transfer::Identity());
  const std::vector<kvt::Key> keys(2);
  const std::pair<const char*, kvt::net::Message> messages[] = {
      {"hello", hello},
      {"goodbye", transfer::GoodbyeMessage(kvt::Error(KVT_ERR_LIMIT, "too much"))},
      {"heartbeat", transfer::HeartbeatMessage()},
      {"pull", transfer::PullMessage(1, 4096, keys)},
      {"pull_stream", transfer::PullStreamMessage(2, keys[0])},
      {"frames", transfer::FramesMessage(1, {kvt::wire::FrameItem(64, 0, KVT_OK)})},
      {"cancel", transfer::CancelMessage(kvt::net::MessageType::kCancel, 1)},
      {"end", transfer::EndMessage(2, KVT_OK)},
      {"push", transfer::PushMessage(3, 0, keys, {64, 128})},
      {"push_results", transfer::PushResultsMessage(3, 0, {KVT_OK, KVT_ERR_LIMIT})}};
  for (const auto& [name, message] : messages) Write("fuzz_message", name, kvt::net::EncodeHead(message));
}

// One message as SendScript reads it.
std::string Line(const kvt::net::Message& message, absl::string_view payload = "") {
  std::string line(1, static_cast<char>(message.type));
  kvt::AppendLe<uint16_t>(&line, static_cast<uint16_t>(message.control.size()));
  kvt::AppendLe<uint16_t>(&line, static_cast<uint16_t>(payload.size()));
  return absl::StrCat(line, message.control, payload);
}

// `frame` has the null key.
void WriteScripts(absl::string_view frame) {
  namespace transfer = kvt::transfer;
  using kvt::net::MessageType;
  const std::string greeted(1, '\0');
  const kvt::Key null;
  kvt::Key other;
  other.bytes[0] = 1;
  const uint64_t size = frame.size();
  const kvt::wire::FrameItem good(size, 0, KVT_OK), absent(0, 1, KVT_ERR_NOT_FOUND);
  Write("fuzz_served", "pull",
        absl::StrCat(greeted, Line(transfer::PullMessage(1, 4096, {null, other})),
                     Line(transfer::CancelMessage(MessageType::kCancel, 1)),
                     Line(transfer::HeartbeatMessage())));
  Write("fuzz_served", "stream", absl::StrCat(greeted, Line(transfer::PullStreamMessage(1, null))));
  Write("fuzz_served", "push",
        absl::StrCat(greeted, Line(transfer::PushMessage(1, 0, {null}, {size}), frame),
                     Line(transfer::PushMessage(2, 0, {null, other}, {size, 3}), absl::StrCat(frame, "abc")),
                     Line(transfer::CancelMessage(MessageType::kCancel, 2))));
  Write("fuzz_remote", "pull",
        absl::StrCat(greeted, Line(transfer::FramesMessage(1, {good, absent}), frame),
                     Line(transfer::PushResultsMessage(2, 0, {KVT_OK}))));
  Write("fuzz_remote", "stream",
        absl::StrCat(greeted, Line(transfer::FramesMessage(3, {good}), frame),
                     Line(transfer::EndMessage(3, KVT_OK)), Line(transfer::EndMessage(1, KVT_ERR_IO)),
                     Line(transfer::GoodbyeMessage(kvt::Error(KVT_ERR_LIMIT, "enough")))));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_seeds CORPUS\n";
    return 2;
  }
  corpus = argv[1];
  const auto model = kvt::fuzz::SmallModel();
  const auto calibration = kvt::fuzz::MakeCalibration(model);
  const std::string profile = *calibration->Finish();
  Write("fuzz_profile", "small", profile);
  const kvt_profile_rung_t rung = {
      .codec = "transform", .ratio = 16, .reserved = 0, .cost = {2e8, 3e8, 15, 4000, 0}};
  const std::string rungs = *kvt::WriteProfileRungs({&rung, 1}, "A processor");
  Write("fuzz_profile", "rungs", rungs);
  Write("fuzz_profile", "profile_with_rungs", profile + rungs);
  Write("fuzz_calibration", "restored", absl::StrCat("r", calibration->Save()));
  Write("fuzz_calibration", "finished", absl::StrCat("f", calibration->Save()));
  kvt::fuzz::Rows rows(model, 4);
  rows.Fill();
  uint8_t number = 0;
  for (const kvt::fuzz::FuzzedCodec& fuzzed : kvt::fuzz::kCodecs) {
    const auto codec = kvt::fuzz::MakeCodec(model, fuzzed, profile);
    const std::vector<uint8_t> frame = kvt::fuzz::Encode(*codec, rows.view());
    WriteFrame(fuzzed.name, kvt::Bytes(frame));
    if (number == 0) WriteScripts(kvt::AsText(kvt::Bytes(frame)));
    const char seed[] = {static_cast<char>(number), 0x40, 0x01, 0x07};
    Write("fuzz_decode", absl::StrCat("codec", number++), absl::string_view(seed, sizeof seed));
  }
  const std::string wrapped = *kvt::WrapProfile(kvt::AsBytes(profile), {});
  Write("fuzz_header", "profile", HeaderOf(kvt::AsBytes(wrapped)));
  WriteMessages();
  return 0;
}
