// Encodes and decodes for tokenizers_compare.py, which compiles it against a build's libraries.
//
//   driver TOKENIZER < texts      each text as u32 length and bytes; answers per text: u32 count, the ids
//   with special
//                                 tokens, then u32 length and bytes of their text, with and without special
//                                 tokens, and streamed, chunks ended by 0x01; count 0xFFFFFFFF where encoding
//                                 fails
//   driver TOKENIZER seconds FILE FILE…   the thread's seconds for encoding each file, best of three, after
//   one to warm up
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace {

void write_u32(uint32_t value) { std::cout.write(reinterpret_cast<const char*>(&value), sizeof value); }
void write_text(const std::string& text) {
  write_u32(static_cast<uint32_t>(text.size()));
  std::cout << text;
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void answer(const plimsoll::Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  if (!tokenizer.encode(text, true, ids)) return write_u32(0xFFFFFFFF);
  write_u32(static_cast<uint32_t>(ids.size()));
  std::cout.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
  write_text(tokenizer.decode(ids, false));
  write_text(tokenizer.decode(ids, true));
  plimsoll::DecodeStream stream(tokenizer, false);
  std::string chunks;
  if (ids.size() < 20000)
    for (const int32_t id : ids) chunks += stream.push(id) + "\x01";
  write_text(chunks);
}

void time_file(const plimsoll::Tokenizer& tokenizer, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  double best = 1e9;
  for (int round = 0; round < 4; ++round) {
    std::vector<int32_t> ids;
    const double start = thread_seconds();
    if (!tokenizer.encode(text, false, ids)) return;
    if (round > 0) best = std::min(best, thread_seconds() - start);
  }
  std::cout << best << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const auto tokenizer = plimsoll::Tokenizer::open(argc > 1 ? argv[1] : "");
  if (!tokenizer) {
    std::cerr << tokenizer.error().message() << "\n";
    return 65;
  }
  for (int i = 3; i < argc; ++i) time_file(**tokenizer, argv[i]);
  if (argc > 2) return 0;
  std::ios::sync_with_stdio(false);
  uint32_t size = 0;
  std::string text;
  while (std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) {
    text.resize(size);
    std::cin.read(text.data(), size);
    answer(**tokenizer, text);
  }
}
