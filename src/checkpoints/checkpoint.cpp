// checkpoint.json: written and read in one fixed order of fields, which its version stands for.
#include "checkpoints/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "io/checksum.h"
#include "io/file.h"
#include "io/json_cursor.h"
#include "io/tree.h"

namespace plimsoll::checkpoints {
namespace {

constexpr std::string_view kFormat = "plimsoll checkpoint";
constexpr int64_t kVersion = 3, kVersionWithBest = 4;
constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;
/// What the text ends with, the digits in the middle.
constexpr std::string_view kChecksumField = "\n\"checksum\": \"", kEnd = "\"}\n";
constexpr size_t kDigits = 16;
constexpr int kMaxRank = 8;

struct IntegerField {
  const char* name;
  int64_t CheckpointManifest::*value;
  int64_t least;
};
constexpr std::array<IntegerField, 10> kIntegers = {
    {{"step", &CheckpointManifest::step, 0},
     {"total_steps", &CheckpointManifest::total_steps, 1},
     {"tokens", &CheckpointManifest::tokens, 0},
     {"seed", &CheckpointManifest::seed, 0},
     {"position", &CheckpointManifest::position, 0},
     {"num_sequences", &CheckpointManifest::num_sequences, 1},
     {"num_data_tokens", &CheckpointManifest::num_data_tokens, 1},
     {"evaluated_step", &CheckpointManifest::evaluated_step, -1},
     {"skipped", &CheckpointManifest::skipped, 0},
     {"skipped_in_a_row", &CheckpointManifest::skipped_in_a_row, 0}}};

void append_string(std::string& text, const std::string& value) { text += io::to_json(io::Tree::of(value)); }

void append_integers(std::string& text, const std::vector<int64_t>& values) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ", ", values[i]);
  text += ']';
}

void append_best(std::string& text, const BestState& b) {
  text += ", \"best\": {\"metric\": ";
  append_string(text, b.metric);
  fmt::format_to(std::back_inserter(text),
                 ", \"step\": {}, \"value\": \"{:016x}\", \"saved_step\": {}, \"saved_value\": \"{:016x}\", "
                 "\"waited\": {}}}",
                 b.step, std::bit_cast<uint64_t>(b.value), b.saved_step,
                 std::bit_cast<uint64_t>(b.saved_value), b.waited);
}

void append_file(std::string& text, const CheckpointFile& file) {
  text += "{\"name\": ";
  append_string(text, file.name);
  fmt::format_to(std::back_inserter(text),
                 ", \"bytes\": {}, \"header_bytes\": {}, \"checksum\": \"{:016x}\", ", file.bytes,
                 file.header_bytes, file.checksum);
  text += "\"tensors\": [";
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const CheckpointTensor& t = file.tensors[i];
    text += i == 0 ? "\n  {\"name\": " : ",\n  {\"name\": ";
    append_string(text, t.name);
    text += ", \"dtype\": ";
    append_string(text, t.dtype);
    text += ", \"shape\": ";
    append_integers(text, t.shape);
    fmt::format_to(std::back_inserter(text), ", \"bytes\": {}, \"checksum\": \"{:016x}\"}}", t.bytes,
                   t.checksum);
  }
  text += "]}";
}

Error broken(std::string what) {
  return Error{
      ErrorCode::kBadData, std::move(what), {}, "resume from an older checkpoint, or --resume never"};
}

/// Not kBadData: what another build wrote is whole, and must not be passed over for an older one.
Error of_another_version(int64_t version) {
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("written in version {}, this build reads {} and {}", version, kVersion, kVersionWithBest),
      {},
      "resume with the build that wrote it, or start a new run with --resume never or another output.dir"};
}

bool has_twins(const std::vector<CheckpointTensor>& tensors) {
  std::set<std::string_view> names;
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& t) { return !names.insert(t.name).second; });
}

/// Reads what write_checkpoint_text wrote; false once something is not as it must be, the cursor says what.
class ManifestReader {
 public:
  explicit ManifestReader(std::string_view text) : cursor_(text) {}

  bool read(CheckpointManifest& m) {
    std::string format;
    if (!cursor_.expect('{') || !string_field("format", format)) return false;
    if (format != kFormat) return cursor_.fail("the format is not '" + std::string(kFormat) + "'");
    if (!next_integer("version", m.version, 1)) return false;
    other_version_ = m.version != kVersion && m.version != kVersionWithBest;
    if (other_version_) return false;
    for (const IntegerField& field : kIntegers)
      if (!next_integer(field.name, m.*field.value, field.least)) return false;
    if (m.skipped > m.step || m.skipped_in_a_row > m.skipped)
      return cursor_.fail("more steps were skipped than done");
    if (m.version == kVersionWithBest && !best(m.best.emplace(), m.step)) return false;
    uint64_t itself = 0;
    return next_checksum("data", m.data) && next_checksum("weights", m.weights) &&
           next_checksum("plan", m.plan) && cursor_.expect(',') && string_field("isa", m.isa) &&
           changes(m.changes) && files(m.files) && next_checksum("checksum", itself) && cursor_.expect('}') &&
           (cursor_.at_end() || cursor_.fail("text after the end"));
  }
  [[nodiscard]] const std::string& error() const { return cursor_.error(); }
  /// Why reading stopped: the format is right, but its fields are those of another version.
  [[nodiscard]] bool other_version() const { return other_version_; }

 private:
  bool key(std::string_view name) {
    if (!cursor_.string(key_)) return false;
    if (key_ != name) return cursor_.fail(fmt::format("expected the field {}", name));
    return cursor_.expect(':');
  }
  bool string_field(std::string_view name, std::string& value) { return key(name) && cursor_.string(value); }
  bool next_integer(std::string_view name, int64_t& value, int64_t least) {
    if (!cursor_.expect(',') || !key(name) || !cursor_.integer(value)) return false;
    return value >= least || cursor_.fail(fmt::format("{} is {}, at least {} is right", name, value, least));
  }
  bool next_checksum(std::string_view name, uint64_t& value) {
    if (!cursor_.expect(',') || !string_field(name, key_)) return false;
    const auto parsed = io::parse_checksum(key_);
    if (!parsed) return cursor_.fail(fmt::format("{} is no checksum of 16 hexadecimal digits", name));
    value = *parsed;
    return true;
  }

  bool changes(std::vector<std::string>& changes) {
    if (!cursor_.expect(',') || !key("changes") || !cursor_.expect('[')) return false;
    if (cursor_.take(']')) return true;
    do {
      if (!cursor_.string(changes.emplace_back())) return false;
    } while (cursor_.take(','));
    return cursor_.expect(']');
  }

  bool best(BestState& b, int64_t step) {
    if (!cursor_.expect(',') || !key("best") || !cursor_.expect('{') || !string_field("metric", b.metric) ||
        !next_integer("step", b.step, -1) || !next_number("value", b.value) ||
        !next_integer("saved_step", b.saved_step, -1) || !next_number("saved_value", b.saved_value) ||
        !next_integer("waited", b.waited, 0) || !cursor_.expect('}'))
      return false;
    return (b.step <= step && b.saved_step <= step) || cursor_.fail("the best step is not done yet");
  }
  /// Its bits: every number reads back as it was, infinities too.
  bool next_number(std::string_view name, double& value) {
    uint64_t bits = 0;
    if (!next_checksum(name, bits)) return false;
    value = std::bit_cast<double>(bits);
    return true;
  }

  bool files(std::vector<CheckpointFile>& files) {
    if (!cursor_.expect(',') || !key("files") || !cursor_.expect('[')) return false;
    if (cursor_.take(']')) return true;
    do {
      CheckpointFile file;
      if (!this->file(file)) return false;
      if (std::any_of(files.begin(), files.end(), [&](const auto& f) { return f.name == file.name; }))
        return cursor_.fail("a file is listed twice");
      files.push_back(std::move(file));
    } while (cursor_.take(','));
    return cursor_.expect(']');
  }

  bool file(CheckpointFile& file) {
    if (!cursor_.expect('{') || !string_field("name", file.name)) return false;
    if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos ||
        file.name.find('\0') != std::string::npos)
      return cursor_.fail("a file's name is none of a file in this folder");
    if (!next_integer("bytes", file.bytes, 0) || !next_integer("header_bytes", file.header_bytes, 0) ||
        !next_checksum("checksum", file.checksum) || !tensors(file) || !cursor_.expect('}'))
      return false;
    if (has_twins(file.tensors)) return cursor_.fail("a tensor is listed twice");
    const int64_t end =
        file.tensors.empty() ? file.header_bytes : file.tensors.back().offset + file.tensors.back().bytes;
    return end == file.bytes || cursor_.fail("a file's tensors do not cover it");
  }

  bool tensors(CheckpointFile& file) {
    if (!cursor_.expect(',') || !key("tensors") || !cursor_.expect('[')) return false;
    if (cursor_.take(']')) return true;
    int64_t offset = file.header_bytes;
    do {
      CheckpointTensor& t = file.tensors.emplace_back();
      if (!cursor_.expect('{') || !string_field("name", t.name) || !cursor_.expect(',') ||
          !string_field("dtype", t.dtype) || !shape(t.shape) || !next_integer("bytes", t.bytes, 0) ||
          !next_checksum("checksum", t.checksum) || !cursor_.expect('}'))
        return false;
      t.offset = offset;
      if (__builtin_add_overflow(offset, t.bytes, &offset) || offset > file.bytes)
        return cursor_.fail("a tensor ends after its file");
    } while (cursor_.take(','));
    return cursor_.expect(']');
  }

  bool shape(std::vector<int64_t>& shape) {
    if (!cursor_.expect(',') || !key("shape") || !cursor_.expect('[')) return false;
    if (cursor_.take(']')) return true;
    do {
      int64_t extent = 0;
      if (!cursor_.integer(extent)) return false;
      if (extent < 0 || shape.size() == kMaxRank) return cursor_.fail("a shape that no tensor has");
      shape.push_back(extent);
    } while (cursor_.take(','));
    return cursor_.expect(']');
  }

  io::JsonCursor cursor_;
  std::string key_;
  bool other_version_ = false;
};

Status check_file(const std::string& directory, const CheckpointFile& file) {
  const std::string path = directory + "/" + file.name;
  PLIMSOLL_ASSIGN(const io::ReadFile content, io::ReadFile::open(path));
  PLIMSOLL_TRY(check_size(content, file));
  if (!file.tensors.empty()) return Ok{};  // checked while they are read
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<int64_t>(file.bytes, 32 << 10)));
  io::Checksum sum;
  for (int64_t at = 0; at < file.bytes; at += static_cast<int64_t>(buffer.size())) {
    const auto piece = std::span(buffer).first(
        static_cast<size_t>(std::min(file.bytes - at, static_cast<int64_t>(buffer.size()))));
    PLIMSOLL_TRY(content.read_at(at, piece));
    sum.add(piece);
  }
  if (sum.value() != file.checksum) return broken("the file's checksum is wrong").at(path);
  return Ok{};
}

}  // namespace

const CheckpointFile* CheckpointManifest::find_file(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.name == name; });
  return found == files.end() ? nullptr : &*found;
}

void write_checkpoint_text(const CheckpointManifest& m, std::string& text) {
  text.clear();
  fmt::format_to(std::back_inserter(text), "{{\"format\": \"{}\", \"version\": {}", kFormat,
                 m.best ? kVersionWithBest : kVersion);
  for (const IntegerField& field : kIntegers)
    fmt::format_to(std::back_inserter(text), ", \"{}\": {}", field.name, m.*field.value);
  if (m.best) append_best(text, *m.best);
  fmt::format_to(std::back_inserter(text),
                 ", \"data\": \"{:016x}\", \"weights\": \"{:016x}\", \"plan\": \"{:016x}\", \"isa\": ",
                 m.data, m.weights, m.plan);
  append_string(text, m.isa);
  text += ",\n\"changes\": [";
  for (size_t i = 0; i < m.changes.size(); ++i) {
    text += i == 0 ? "" : ", ";
    append_string(text, m.changes[i]);
  }
  text += "]";
  text += ",\n\"files\": [";
  for (size_t i = 0; i < m.files.size(); ++i) {
    text += i == 0 ? "\n " : ",\n ";
    append_file(text, m.files[i]);
  }
  text += "],";
  text += kChecksumField;
  const uint64_t sum = io::checksum(text);
  fmt::format_to(std::back_inserter(text), "{:016x}{}", sum, kEnd);
}

Result<CheckpointManifest> parse_checkpoint(std::string_view text) {
  const size_t behind = kDigits + kEnd.size();
  if (text.size() < behind + kChecksumField.size() || !text.ends_with(kEnd) ||
      !text.substr(0, text.size() - behind).ends_with(kChecksumField))
    return broken("the text does not end with its checksum");
  const auto stored = io::parse_checksum(text.substr(text.size() - behind, kDigits));
  if (!stored || *stored != io::checksum(text.substr(0, text.size() - behind)))
    return broken("its own checksum is wrong");
  if (const int64_t at = io::utf8_error_at(text); at >= 0)
    return broken(fmt::format("byte {} is no UTF-8", at));
  CheckpointManifest manifest;
  ManifestReader reader(text);
  if (!reader.read(manifest))
    return reader.other_version() ? of_another_version(manifest.version) : broken(reader.error());
  return manifest;
}

Result<Checkpoint> open_checkpoint(const std::string& path) {
  const std::string file = fmt::format("{}/{}", path, kCheckpointFile);
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(file, kMaxManifestBytes));
  auto manifest = parse_checkpoint(text);
  if (!manifest) return std::move(manifest).error().at(file);
  Checkpoint checkpoint{path, std::move(*manifest)};
  PLIMSOLL_TRY(check_small_files(checkpoint));
  return checkpoint;
}

Status check_size(const io::ReadFile& content, const CheckpointFile& file) {
  if (content.size_bytes() == file.bytes) return Ok{};
  return broken(fmt::format("the file has {} bytes, {} were written", content.size_bytes(), file.bytes))
      .at(content.path());
}

Status check_small_files(const Checkpoint& checkpoint) {
  for (const CheckpointFile& f : checkpoint.manifest.files) PLIMSOLL_TRY(check_file(checkpoint.path, f));
  return Ok{};
}

}  // namespace plimsoll::checkpoints
