#include "preprocessing/cache_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "io/file.h"

namespace plimsoll::preprocessing {
namespace {

/// A checksum of what is in a file; empty where it cannot be read, which its reader will say. Sizes and times
/// would not do: tar, rsync, image layers and stores with fixed times give other contents the same ones.
std::string contents_of(const std::string& path) {
  constexpr size_t kBlockBytes = size_t{1} << 20;
  const auto file = io::ReadFile::open(path);
  if (!file) return {};
  io::Checksum sum;
  std::vector<std::byte> block(kBlockBytes);
  for (int64_t at = 0; at < file->size_bytes();) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(file->size_bytes() - at, static_cast<int64_t>(kBlockBytes)));
    const std::span<std::byte> bytes = std::span(block).first(count);
    if (!file->read_at(at, bytes)) return {};
    sum.add(bytes);
    at += static_cast<int64_t>(count);
  }
  return fmt::format("{} {}", file->size_bytes(), io::checksum_text(sum.value()));
}

}  // namespace

std::string content_of(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  auto content = path.empty() ? Result<std::string>(std::string()) : io::read_small_file(path, kMostBytes);
  return content ? std::move(*content) : std::string();
}

void CacheKey::add(std::string_view part) {
  sum_.add(part);
  sum_.add(std::string_view("\0", 1));
}

void CacheKey::add_tokenizer(const tokenizers::Tokenizer& tokenizer, const std::string& path,
                             const std::string& folder) {
  add(io::checksum_text(tokenizer.vocabulary_hash()));
  add(content_of(path));
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
    add(content_of(folder + "/" + name));
}

void CacheKey::add_files(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code code;
    add(std::filesystem::absolute(path, code).string());
    add(contents_of(path));
  }
}

}  // namespace plimsoll::preprocessing
