#include "cli/data/data_files.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace plimsoll::cli {
namespace {

int64_t documents_in(const datasets::TokenSource& source) {
  return source.has_rows() ? source.num_rows() : 1;
}

int64_t document_tokens(const datasets::TokenSource& source) {
  return source.has_rows() ? source.row_tokens() : source.num_tokens();
}

}  // namespace

Result<DataFile> DataFile::open(const std::string& path) {
  // What a file holds goes before its name: data tokenize writes shards under any.
  if (datasets::is_shard(path)) {
    PLIMSOLL_ASSIGN(datasets::Shard shard, datasets::Shard::open(path));
    return DataFile(std::move(shard));
  }
  if (path.ends_with(".npy") || path.ends_with(".bin") || path.ends_with(".txt")) {
    // Which ids a model has is not known here.
    PLIMSOLL_ASSIGN(datasets::TokenSource source, datasets::TokenSource::open(path, INT_MAX));
    return DataFile(std::move(source));
  }
  PLIMSOLL_TRY(io::ReadFile::open(path));
  return Error{ErrorCode::kInvalidArgument,
               "this is neither a token shard nor a .npy, .bin, .txt, .jsonl or .csv file", path,
               "make a shard of it: plimsoll data tokenize"};
}

Result<DataFile> DataFile::open_as(const std::string& shard, std::string path, const char* kind) {
  PLIMSOLL_ASSIGN(datasets::Shard opened, datasets::Shard::open(shard));
  DataFile file(std::move(opened));
  file.shown_path_ = std::move(path);
  file.shown_kind_ = kind;
  return file;
}

const std::string& DataFile::path() const {
  if (!shown_path_.empty()) return shown_path_;
  return std::visit([](const auto& file) -> const std::string& { return file.path(); }, file_);
}

bool DataFile::is_text() const { return shard() == nullptr && path().ends_with(".txt"); }

const char* DataFile::kind() const {
  if (shown_kind_ != nullptr) return shown_kind_;
  if (shard() != nullptr) return "token shard";
  if (is_text()) return "text as bytes";
  return path().ends_with(".bin") ? ".bin tokens" : ".npy array";
}

int64_t DataFile::num_documents() const {
  return shard() != nullptr ? shard()->info().num_documents
                            : documents_in(std::get<datasets::TokenSource>(file_));
}

int64_t DataFile::num_tokens() const {
  return shard() != nullptr ? shard()->info().num_tokens
                            : std::get<datasets::TokenSource>(file_).num_tokens();
}

int64_t DataFile::num_targets() const {
  return shard() != nullptr ? shard()->info().num_targets : num_tokens() - num_documents();
}

Status DataFile::visit_lengths(const std::function<void(int64_t)>& visit) const {
  if (shard() != nullptr)
    return shard()->visit_documents([&](const datasets::ShardDocument& document) -> Status {
      visit(document.num_tokens());
      return Ok{};
    });
  const auto& source = std::get<datasets::TokenSource>(file_);
  for (int64_t row = 0; row < documents_in(source); ++row) visit(document_tokens(source));
  return Ok{};
}

Result<Sample> DataFile::sample(int64_t document, int64_t most) const {
  Sample sample;
  sample.document = document;
  std::vector<std::byte> scratch(static_cast<size_t>(datasets::Shard::kDocumentScratchBytes));
  const auto size_for = [&](int64_t tokens) {
    sample.num_tokens = tokens;
    sample.ids.resize(static_cast<size_t>(std::min(tokens, most)));
    sample.in_loss.assign(sample.ids.size(), 1);
  };
  if (shard() != nullptr) {
    datasets::ShardDocument found;
    PLIMSOLL_TRY(shard()->read_documents(document, {&found, 1}, scratch));
    size_for(found.num_tokens());
    scratch.resize(static_cast<size_t>(shard()->block_bytes()));
    PLIMSOLL_TRY(shard()->read(found.begin, sample.ids, sample.in_loss, scratch));
    return sample;
  }
  const auto& source = std::get<datasets::TokenSource>(file_);
  size_for(document_tokens(source));
  PLIMSOLL_TRY(source.read(document * document_tokens(source), sample.ids, scratch));
  return sample;
}

}  // namespace plimsoll::cli
