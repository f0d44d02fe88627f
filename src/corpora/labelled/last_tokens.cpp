#include "corpora/labelled/last_tokens.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>

#include "datasets/shard.h"

namespace plimsoll::corpora {

Result<std::vector<int32_t>> last_tokens(const std::string& path, int64_t most) {
  PLIMSOLL_ASSIGN(const datasets::Shard shard, datasets::Shard::open(path));
  const int64_t total = shard.info().num_documents, stride = std::max<int64_t>(1, total / most);
  std::vector<std::byte> scratch(
      static_cast<size_t>(std::max(shard.block_bytes(), datasets::Shard::kDocumentScratchBytes)));
  std::set<int32_t> tokens;
  for (int64_t i = 0; i < total; i += stride) {
    datasets::ShardDocument document;
    PLIMSOLL_TRY(shard.read_documents(
        i, std::span(&document, 1),
        std::span(scratch).first(static_cast<size_t>(datasets::Shard::kDocumentScratchBytes))));
    if (document.num_tokens() == 0) continue;
    int32_t last = 0;
    PLIMSOLL_TRY(shard.read(document.begin + document.num_tokens() - 1, std::span(&last, 1), {}, scratch));
    tokens.insert(last);
  }
  return std::vector<int32_t>(tokens.begin(), tokens.end());
}

}  // namespace plimsoll::corpora
