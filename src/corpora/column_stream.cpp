#include "corpora/column_stream.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "corpora/column_module.h"
#include "corpora/labelled/labelled_example.h"
#include "corpora/parse_example.h"

namespace plimsoll::corpora {
namespace {

constexpr const char* kModuleName = "plimsoll-columns.so";
/// Of an example with a label, beside its text or tokens.
constexpr const char* kOfLabels[] = {"text_pair", "label", "labels", "attention_mask"};

/// Beside the program, above it (where tests lie), or where it is installed.
std::vector<std::string> module_places() {
  std::error_code code;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", code).parent_path();
  std::vector<std::string> places;
  for (const char* way : {".", "..", "../lib/plimsoll"})
    places.push_back((folder / way / kModuleName).string());
  return places;
}

struct Module {
  const PlimsollColumnsModule* functions = nullptr;
  std::string why;  ///< there is none
};

Module load_module() {
  for (const std::string& place : module_places()) {
    std::error_code code;
    if (!std::filesystem::exists(place, code)) continue;
    void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return {nullptr, ::dlerror()};
    PlimsollColumnsEntry entry = nullptr;
    void* const symbol = ::dlsym(handle, "plimsoll_columns_module");
    std::memcpy(&entry, &symbol, sizeof entry);
    if (entry == nullptr || entry()->version != kPlimsollColumnsVersion)
      return {nullptr, fmt::format("{} is of another version", place)};
    return {entry(), {}};
  }
  return {nullptr, "this program was built without what reads them"};
}

const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}

class ColumnStream final : public InputStream {
 public:
  explicit ColumnStream(io::ReadFile file) : InputStream(std::move(file)) {}
  ~ColumnStream() override {
    if (columns_ != nullptr) module().functions->close(columns_);
  }

  Status begin(const std::string& text_key) {
    std::vector<const char*> wanted(std::begin(kOfLabels), std::end(kOfLabels));
    if (text_key.empty()) {
      for (const std::string_view name : kExampleMembers) wanted.push_back(name.data());
      for (const std::string_view name : kPairColumns) wanted.push_back(name.data());
    } else {
      wanted.insert(wanted.end(), {text_key.c_str(), "input_ids"});
    }
    int is_type = 0;
    columns_ = module().functions->open(path().c_str(), wanted.data(), wanted.size(), &is_type, error_.data(),
                                        error_.size());
    if (columns_ != nullptr) return Ok{};
    return is_type != 0 ? unread_type() : damaged();
  }

  Result<size_t> read(std::span<char> out) override {
    if (left_ == 0) {
      const int found = module().functions->next(columns_, &text_, &left_, error_.data(), error_.size());
      if (found < 0) return damaged();
      int64_t done = 0, total = 0;
      module().functions->progress(columns_, &done, &total);
      const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
      set_bytes_read(found == 0 ? size_bytes()
                                : static_cast<int64_t>(share * static_cast<double>(size_bytes())));
    }
    const size_t count = std::min(left_, out.size());
    std::memcpy(out.data(), text_, count);
    text_ += count;
    left_ -= count;
    return count;
  }

 private:
  [[nodiscard]] Error damaged() const {
    return {ErrorCode::kBadData, fmt::format("the file cannot be read: {}", error_.data()), path(),
            "make or download the file again"};
  }
  [[nodiscard]] Error unread_type() const {
    return {ErrorCode::kBadData, fmt::format("{}, which is not read", error_.data()), path(),
            "cast the column to text or numbers, or leave it out, with datasets: "
            "data.cast_column(name, datasets.Value(\"string\")), data.remove_columns(name)"};
  }
  PlimsollColumns* columns_ = nullptr;
  const char* text_ = nullptr;
  size_t left_ = 0;
  std::array<char, 512> error_ = {};
};

}  // namespace

bool has_columns_by_name(const std::string& path) {
  return path.ends_with(".parquet") || path.ends_with(".arrow");
}

Result<std::unique_ptr<InputStream>> open_columns(const std::string& path, const std::string& text_key) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  if (module().functions == nullptr) {
    const bool parquet = path.ends_with(".parquet");
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} files are not read here: {}", parquet ? "Parquet" : "Arrow", module().why), path,
        fmt::format("add the reader: make columns, in the source tree; or convert the file: python3 -c "
                    "\"import datasets; datasets.Dataset.from_{}('{}')"
                    ".to_json('data.jsonl')\"",
                    parquet ? "parquet" : "file", path)};
  }
  auto stream = std::make_unique<ColumnStream>(std::move(file));
  PLIMSOLL_TRY(stream->begin(text_key));
  return std::unique_ptr<InputStream>(std::move(stream));
}

std::string column_features(const std::string& path) {
  if (module().functions == nullptr) return {};
  int is_type = 0;
  std::array<char, 512> error{};
  PlimsollColumns* const columns = module().functions->open(
      path.c_str(), std::begin(kOfLabels), std::size(kOfLabels), &is_type, error.data(), error.size());
  if (columns == nullptr) return {};
  std::string features = module().functions->features(columns);
  module().functions->close(columns);
  return features;
}

}  // namespace plimsoll::corpora
