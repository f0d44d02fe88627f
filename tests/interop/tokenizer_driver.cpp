// Encodes and decodes for tokenizers_compare.py, which compiles it against a build's libraries.
//
//   driver TOKENIZER < texts       each text as u32 length and bytes; answers per text: u32 count, the ids
//                                 with special tokens, the byte that each of them ends at, 1 where the text
//                                 in pieces has the same ids, then u32 length and bytes of their text, with
//                                 and without special tokens, and streamed, chunks ended by 0x01, then the
//                                 byte that each token begins at; count 0xFFFFFFFF where encoding fails
//   driver TOKENIZER rows < texts  per row u32 most tokens, then two texts as above, the second of length
//                                 0xFFFFFFFF where there is none; answers per row: u32 count, ids, type ids
//   driver TOKENIZER seconds FILE FILE…   the thread's seconds for encoding each file, best of three, after
//   one to warm up
#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace {

constexpr size_t kStreamLimit = 2000;  // as in tokenizers_compare.py

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

/// The ids of the text cut at safe places, as a reader comes to them; the stretches it reads depend on the
/// text alone.
std::vector<int32_t> encode_in_pieces(const plimsoll::tokenizers::Tokenizer& tokenizer,
                                      std::string_view text) {
  std::vector<int32_t> ids;
  const size_t most = text.size() < 20000 ? 120 : 5000;
  size_t begin = 0;
  size_t end = 0;
  while (end < text.size()) {
    end = std::min(text.size(), end + 1 + (end * 2654435761u >> 7) % std::max(most, end - begin));
    const size_t cut = end == text.size() ? 0 : tokenizer.last_safe_cut(text.substr(begin, end - begin));
    if (cut == 0) continue;
    (void)!tokenizer.encode_piece(text.substr(begin, cut), begin == 0, false, true, ids);
    begin += cut;
  }
  (void)!tokenizer.encode_piece(text.substr(begin), begin == 0, true, true, ids);
  return ids;
}

void answer(const plimsoll::tokenizers::Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  std::vector<int32_t> same;
  std::vector<size_t> ends;
  std::vector<int32_t> again;
  std::vector<plimsoll::tokenizers::Span> spans;
  if (!tokenizer.encode(text, true, ids)) return write_u32(0xFFFFFFFF);
  if (!tokenizer.encode_with_spans(text, true, again, spans) || again != ids)
    spans.assign(ids.size(), {SIZE_MAX, 0});
  if (!tokenizer.encode_with_ends(text, true, same, ends) || same != ids) ends.assign(ids.size(), SIZE_MAX);
  const bool joined = encode_in_pieces(tokenizer, text) == ids;
  write_u32(static_cast<uint32_t>(ids.size()));
  std::cout.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(4 * ids.size()));
  for (const size_t end : ends) write_u32(static_cast<uint32_t>(end));
  write_u32(joined);
  write_text(tokenizer.decode(ids, false));
  write_text(tokenizer.decode(ids, true));
  plimsoll::tokenizers::DecodeStream stream(tokenizer, false);
  std::string chunks;
  if (ids.size() < kStreamLimit)
    for (const int32_t id : ids) chunks += stream.push(id) + "\x01";
  write_text(chunks);
  for (const auto& span : spans) write_u32(static_cast<uint32_t>(span.begin));
}

bool read_text(std::string& text) {
  uint32_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) return false;
  if (size == 0xFFFFFFFF) return false;
  text.resize(size);
  return static_cast<bool>(std::cin.read(text.data(), size));
}

void answer_rows(const plimsoll::tokenizers::Tokenizer& tokenizer) {
  uint32_t most = 0;
  while (std::cin.read(reinterpret_cast<char*>(&most), sizeof most)) {
    std::string text, pair;
    read_text(text);
    const bool is_pair = read_text(pair);
    std::vector<int32_t> ids, types;
    if (!tokenizer.encode_within(text, is_pair ? std::optional<std::string_view>(pair) : std::nullopt, most,
                                 ids, &types)) {
      write_u32(0xFFFFFFFF);
      continue;
    }
    write_u32(static_cast<uint32_t>(ids.size()));
    for (const std::vector<int32_t>& one : {ids, types})
      for (const int32_t value : one) write_u32(static_cast<uint32_t>(value));
  }
}

void time_file(const plimsoll::tokenizers::Tokenizer& tokenizer, const char* path) {
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
  const auto tokenizer = plimsoll::tokenizers::Tokenizer::open(argc > 1 ? argv[1] : "");
  if (!tokenizer) {
    std::cerr << tokenizer.error().message() << "\n";
    return 65;
  }
  std::ios::sync_with_stdio(false);
  if (argc == 3 && std::string_view(argv[2]) == "rows") return answer_rows(**tokenizer), 0;
  for (int i = 3; i < argc; ++i) time_file(**tokenizer, argv[i]);
  if (argc > 2) return 0;
  uint32_t size = 0;
  std::string text;
  while (std::cin.read(reinterpret_cast<char*>(&size), sizeof size)) {
    text.resize(size);
    std::cin.read(text.data(), size);
    answer(**tokenizer, text);
  }
}
