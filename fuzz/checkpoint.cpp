// checkpoint.json: a wrong checksum never passes; with a right one, whatever is accepted has files whose
// tensors cover them, and is written again as text that reads back to the same.
#include "checkpoints/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/checksum.h"

namespace {

using plimsoll::checkpoints::CheckpointManifest;

void check_accepted(const CheckpointManifest& manifest) {
  for (const auto& file : manifest.files) {
    int64_t at = file.header_bytes;
    for (const auto& tensor : file.tensors) {
      PLIMSOLL_CHECK(tensor.offset == at && tensor.bytes >= 0, file.name);
      at += tensor.bytes;
    }
    PLIMSOLL_CHECK(at == file.bytes && file.name.find('/') == std::string::npos, file.name);
  }
  std::string text, again;
  plimsoll::checkpoints::write_checkpoint_text(manifest, text);
  const auto read = plimsoll::checkpoints::parse_checkpoint(text);
  PLIMSOLL_CHECK(read.ok(), "a manifest that does not read back: " + text);
  plimsoll::checkpoints::write_checkpoint_text(*read, again);
  PLIMSOLL_CHECK(again == text, "a manifest that reads back differently: " + text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto manifest = plimsoll::checkpoints::parse_checkpoint(text)) check_accepted(*manifest);
  // What stands behind the last bracket is the checksum; made right, it opens the way to the rest.
  text.resize(text.rfind(']') == std::string::npos ? 0 : text.rfind(']') + 1);
  text += ",\n\"checksum\": \"";
  text += plimsoll::io::checksum_text(plimsoll::io::checksum(text)) + "\"}\n";
  if (const auto manifest = plimsoll::checkpoints::parse_checkpoint(text)) check_accepted(*manifest);
  return 0;
}
