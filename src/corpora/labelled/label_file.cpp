// The header has a fixed size, so that it can be written when all is known.
#include "corpora/labelled/label_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "base/check.h"
#include "corpora/example.h"
#include "corpora/reasons.h"
#include "io/checksum.h"
#include "io/json.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

using datasets::shard::load_u32;
using datasets::shard::load_u64;
using datasets::shard::store_u32;
using datasets::shard::store_u64;

constexpr std::string_view kMagic = "plmlabel";
constexpr uint32_t kVersion = 1;
constexpr int64_t kMaxTextBytes = int64_t{64} << 20;

// Offsets in the header.
constexpr size_t kAtVersion = 8, kAtWidth = 12, kAtEntries = 16, kAtTextBytes = 24, kAtShardHash = 32,
                 kAtContentHash = 40, kAtChecksum = 48, kLabelHeaderBytes = 56;

int64_t entry_bytes(int64_t width) { return 16 + 4 * width; }
/// Blocks of about 16 KiB.
int64_t entries_per_block(int64_t width) {
  return std::max<int64_t>(1, (int64_t{16} << 10) / entry_bytes(width));
}

datasets::shard::TableLayout layout_of(int64_t width, int64_t entries) {
  return {.offset = static_cast<int64_t>(kLabelHeaderBytes),
          .num_entries = entries,
          .entry_bytes = entry_bytes(width),
          .entries_per_block = entries_per_block(width)};
}

/// Paths need not be UTF-8, and JSON is.
io::Tree list_of(const std::vector<std::string>& texts) {
  std::vector<io::Tree> items;
  for (const std::string& text : texts) {
    std::string repaired;
    tokenizers::append_repaired(text, repaired);
    items.push_back(io::Tree::of(std::move(repaired)));
  }
  return io::Tree::list(std::move(items));
}

std::vector<std::string> texts_of(const io::Tree* list) {
  std::vector<std::string> texts;
  if (list != nullptr)
    for (const io::Tree& item : list->items) texts.push_back(item.text);
  return texts;
}

Error damaged_labels(const std::string& path, std::string_view what) {
  return {ErrorCode::kBadData, fmt::format("the file of labels is damaged: {}", what), path,
          "remove the file: it is made again"};
}

int64_t width_of(const RawLabel& label) {
  return label.kind == RawLabelKind::kList ? static_cast<int64_t>(label.values.size()) : 1;
}

std::string shape_text(bool list, int64_t width) {
  return list ? fmt::format("a list of {}", width) : std::string("a single value");
}

}  // namespace

struct LabelFileWriter::State {
  datasets::shard::SequentialFile file;
  std::vector<std::string> files;
  io::Checksum content = {};
  std::optional<datasets::shard::TableWriter> table = {};  ///< from the first label on
  int64_t width = 1;
  bool lists = false;
  std::vector<std::string> names = {};
  std::map<std::string, uint32_t, std::less<>> index_of = {};

  Status flush() {
    const std::span<const std::byte> block = table->take();
    content.add(block);
    return file.append(block);
  }
};

LabelFileWriter::LabelFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
LabelFileWriter::LabelFileWriter(LabelFileWriter&&) noexcept = default;
LabelFileWriter& LabelFileWriter::operator=(LabelFileWriter&&) noexcept = default;
LabelFileWriter::~LabelFileWriter() = default;

Result<LabelFileWriter> LabelFileWriter::create(const std::string& path, std::vector<std::string> files) {
  PLIMSOLL_ASSIGN(auto file,
                  datasets::shard::SequentialFile::create(path, static_cast<int64_t>(kLabelHeaderBytes)));
  return LabelFileWriter(std::make_unique<State>(State{std::move(file), std::move(files)}));
}

Status LabelFileWriter::check(const RawLabel& label, uint32_t file, int64_t line) const {
  const State& s = *state_;
  const auto bad = [&](std::string what) {
    return Error{ErrorCode::kBadData, std::move(what), place_of(s.files[file], line), kSkipHint};
  };
  const bool list = label.kind == RawLabelKind::kList;
  if (width_of(label) > io::kMaxLabels)
    return bad(fmt::format("label has {} values, more than {}", width_of(label), io::kMaxLabels));
  if (s.table && (list != s.lists || width_of(label) != s.width))
    return bad(fmt::format("label is {}, the first one {}", shape_text(list, width_of(label)),
                           shape_text(s.lists, s.width)));
  const bool new_name = label.kind == RawLabelKind::kName && !s.index_of.contains(label.name);
  if (new_name && static_cast<int64_t>(s.names.size()) == io::kMaxLabels)
    return bad(fmt::format("there are more than {} names of labels", io::kMaxLabels));
  return Ok{};
}

Status LabelFileWriter::add(const RawLabel& label, uint32_t file, int64_t line) {
  PLIMSOLL_TRY(check(label, file, line));
  State& s = *state_;
  if (!s.table) {
    s.width = width_of(label);
    s.lists = label.kind == RawLabelKind::kList;
    s.table.emplace(entry_bytes(s.width), entries_per_block(s.width));
  }
  if (s.table->full()) PLIMSOLL_TRY(s.flush());
  std::byte* to = s.table->next();
  store_u32(to, static_cast<uint32_t>(label.kind));
  store_u32(to + 4, file);
  store_u64(to + 8, static_cast<uint64_t>(line));
  std::byte* values = to + 16;
  if (label.kind == RawLabelKind::kName) {
    const auto [at, inserted] = s.index_of.emplace(label.name, static_cast<uint32_t>(s.names.size()));
    if (inserted) s.names.push_back(label.name);
    const auto index = static_cast<float>(at->second);
    std::memcpy(values, &index, sizeof index);
  } else if (label.kind == RawLabelKind::kAbsent) {
    std::memset(values, 0, 4 * static_cast<size_t>(s.width));
  } else {
    std::memcpy(values, label.values.data(), 4 * static_cast<size_t>(s.width));
  }
  return Ok{};
}

Status LabelFileWriter::finish(uint64_t shard_hash) {
  State& s = *state_;
  if (!s.table) s.table.emplace(entry_bytes(s.width), entries_per_block(s.width));
  PLIMSOLL_TRY(s.flush());
  const std::string text =
      io::to_json(io::Tree::map({{"files", list_of(s.files)}, {"names", list_of(s.names)}}));
  s.content.add(text);
  PLIMSOLL_TRY(s.file.append(std::as_bytes(std::span(text))));
  std::array<std::byte, kLabelHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  store_u32(header.data() + kAtVersion, kVersion);
  store_u32(header.data() + kAtWidth, static_cast<uint32_t>(s.width));
  store_u64(header.data() + kAtEntries, static_cast<uint64_t>(s.table->num_entries()));
  store_u64(header.data() + kAtTextBytes, text.size());
  store_u64(header.data() + kAtShardHash, shard_hash);
  store_u64(header.data() + kAtContentHash, s.content.value());
  store_u64(header.data() + kAtChecksum, io::checksum(std::span(header).first(kAtChecksum)));
  return s.file.commit(header);
}

Result<LabelFile> LabelFile::open(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  std::array<std::byte, kLabelHeaderBytes> header{};
  if (file.size_bytes() < static_cast<int64_t>(kLabelHeaderBytes))
    return damaged_labels(path, "it is shorter than its header");
  PLIMSOLL_TRY(file.read_at(0, header));
  if (std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0 ||
      load_u32(header.data() + kAtVersion) != kVersion)
    return damaged_labels(path, "it is none, or of another version");
  if (io::checksum(std::span(header).first(kAtChecksum)) != load_u64(header.data() + kAtChecksum))
    return damaged_labels(path, "its header does not match its checksum");
  const auto width = static_cast<int64_t>(load_u32(header.data() + kAtWidth));
  const uint64_t entries = load_u64(header.data() + kAtEntries),
                 text_bytes = load_u64(header.data() + kAtTextBytes);
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (width < 1 || width > io::kMaxLabels || entries > kMost ||
      text_bytes > static_cast<uint64_t>(kMaxTextBytes))
    return damaged_labels(path, "its counts are none");
  const datasets::shard::TableLayout table = layout_of(width, static_cast<int64_t>(entries));
  const int64_t text_at = table.offset + table.size_bytes();
  if (text_at + static_cast<int64_t>(text_bytes) != file.size_bytes())
    return damaged_labels(path, "it is not as long as its header says");
  std::string text(text_bytes, '\0');
  PLIMSOLL_TRY(file.read_at(text_at, std::as_writable_bytes(std::span(text))));
  LabelFile labels(std::move(file), table, width);
  labels.shard_hash_ = load_u64(header.data() + kAtShardHash);
  labels.content_hash_ = load_u64(header.data() + kAtContentHash);
  const auto tree = io::parse_json(text, {.max_bytes = kMaxTextBytes, .max_nodes = 4 * io::kMaxLabels});
  if (!tree) return damaged_labels(path, "its names do not read");
  labels.files_ = texts_of(tree->find("files"));
  labels.names_ = texts_of(tree->find("names"));
  return labels;
}

Result<LabelEntry> LabelFile::parse(const std::byte* from) const {
  LabelEntry entry;
  const uint32_t kind = load_u32(from);
  entry.kind = static_cast<RawLabelKind>(kind);
  entry.file = load_u32(from + 4);
  entry.line = static_cast<int64_t>(load_u64(from + 8));
  entry.values = {reinterpret_cast<const float*>(from + 16), static_cast<size_t>(width_)};
  const bool named = entry.kind != RawLabelKind::kName ||
                     (entry.values[0] >= 0 && entry.values[0] < static_cast<float>(names_.size()));
  if (kind > static_cast<uint32_t>(RawLabelKind::kList) || entry.file >= files_.size() || !named)
    return damaged_labels(path(), "an entry is none");
  return entry;
}

Result<LabelEntry> LabelFile::read(int64_t index, std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(index >= 0 && index < size(), "a label outside of its file");
  PLIMSOLL_ASSIGN(const auto block, datasets::shard::read_table_block(file_, table_, table_.block_of(index),
                                                                      "labels", scratch));
  return parse(block.data() + index % table_.entries_per_block * table_.entry_bytes);
}

Status LabelFile::visit(const std::function<Status(const LabelEntry&)>& visit) const {
  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes()));
  for (int64_t b = 0; b < table_.num_blocks(); ++b) {
    PLIMSOLL_ASSIGN(const auto block, datasets::shard::read_table_block(file_, table_, b, "labels", scratch));
    for (size_t at = 0; at < block.size(); at += static_cast<size_t>(table_.entry_bytes)) {
      PLIMSOLL_ASSIGN(const LabelEntry entry, parse(block.data() + at));
      PLIMSOLL_TRY(visit(entry));
    }
  }
  return Ok{};
}

std::string LabelFile::place(const LabelEntry& entry) const {
  return place_of(files_[entry.file], entry.line);
}

}  // namespace plimsoll::corpora
