#include "corpora/images/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "corpora/labelled/label_file.h"
#include "corpora/labelled/resolve_labels.h"
#include "datasets/example_source.h"
#include "images/load.h"
#include "images/load_times.h"
#include "io/checksum.h"
#include "io/read_part.h"

namespace plimsoll::corpora {
namespace {

/// A block of a list or of labels, a path and a name.
constexpr int64_t kLookUpBytes = int64_t{32} << 10;

}  // namespace

int64_t image_scratch_bytes(int64_t reading_bytes) { return kLookUpBytes + reading_bytes; }

struct ImageDataset::State {
  struct Part {
    ImageList list;
    LabelFile labels;
  };
  ImageDatasetOptions options;
  std::vector<Part> parts;
  std::vector<LabelReader> readers;  ///< of the parts
  std::vector<int64_t> ends;         ///< images up to each part's end

  Status add(const std::string& path) {
    PLIMSOLL_ASSIGN(ImageList list, ImageList::open(path));
    PLIMSOLL_ASSIGN(LabelFile labels, LabelFile::open(list_labels(path)));
    if (labels.shard_hash() != list.content_hash() || labels.size() != list.size())
      return Error{ErrorCode::kBadData, "the file of labels belongs to another list than this", path,
                   "remove both files: they are made again"};
    if (list.summary().reading_bytes > options.reading_bytes)
      return Error{ErrorCode::kBadData, "the images need more memory than the plan has for reading them",
                   path, "run again, with a new plan"};
    ends.push_back((ends.empty() ? 0 : ends.back()) + list.size());
    parts.push_back({std::move(list), std::move(labels)});
    return Ok{};
  }

  [[nodiscard]] size_t part_of(int64_t index) const {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), index) - ends.begin());
  }
  [[nodiscard]] int64_t begin_of(size_t part) const { return part == 0 ? 0 : ends[part - 1]; }

  Result<int32_t> label(size_t part, int64_t index, std::span<std::byte> scratch) const {
    if (options.labels.names.empty()) return datasets::kNoTarget;
    PLIMSOLL_ASSIGN(const LabelEntry entry, parts[part].labels.read(index, scratch));
    float label = 0;
    PLIMSOLL_TRY(readers[part].read(entry, {&label, 1}));
    return static_cast<int32_t>(label);
  }

  /// Decodes the file, or the part of one, that an entry of a list names.
  Status load(const ListedImage& image, const images::Draw& draw, std::span<uint8_t> pixels,
              std::span<std::byte> scratch) const {
    if (image.bytes < 0 || image.bytes > options.reading_bytes) return changed(image);
    const std::span<std::byte> content = scratch.first(static_cast<size_t>(image.bytes));
    PLIMSOLL_ASSIGN(const int64_t size, timed_read(image, content));
    if (image.is_part ? image.bytes > size - image.offset : image.bytes != size) return changed(image);
    Status decoded = images::load(content, options.processor, options.augmentations.empty() ? nullptr : &draw,
                                  pixels, scratch.subspan(content.size()));
    if (decoded) return Ok{};
    Error error = std::move(decoded).error();
    error.where = where(image);
    error.hint = "correct it, or leave such images out of the loss: data.on_error=skip";
    return error;
  }
  static Result<int64_t> timed_read(const ListedImage& image, std::span<std::byte> content) {
    const images::LoadTimer timer(images::LoadPart::kReading);
    return io::read_part(image.path, image.offset, content);
  }
  static std::string where(const ListedImage& image) {
    return image.is_part ? fmt::format("{}: {}", image.path, image.name) : std::string(image.path);
  }
  static Error changed(const ListedImage& image) {
    return {ErrorCode::kBadData, "the image has changed since the run began", where(image), "run again"};
  }
};

ImageDataset::ImageDataset(std::unique_ptr<State> state) : state_(std::move(state)) {}
ImageDataset::ImageDataset(ImageDataset&&) noexcept = default;
ImageDataset& ImageDataset::operator=(ImageDataset&&) noexcept = default;
ImageDataset::~ImageDataset() = default;

Result<ImageDataset> ImageDataset::open(std::span<const std::string> lists,
                                        const ImageDatasetOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  for (const std::string& path : lists) PLIMSOLL_TRY(state->add(path));
  // They point at labels and files, which lie still from here on.
  for (const State::Part& part : state->parts)
    state->readers.emplace_back(state->options.labels, part.labels);
  return ImageDataset(std::move(state));
}

int64_t ImageDataset::size() const { return state_->ends.empty() ? 0 : state_->ends.back(); }

int64_t ImageDataset::scratch_bytes() const { return image_scratch_bytes(state_->options.reading_bytes); }

uint64_t ImageDataset::fingerprint() const {
  io::Checksum sum;
  for (const State::Part& part : state_->parts)
    for (const uint64_t value : {part.list.content_hash(), part.labels.content_hash()})
      sum.add(std::as_bytes(std::span(&value, 1)));
  return sum.value();
}

Status ImageDataset::keep_within(int64_t& room) {
  for (State::Part& part : state_->parts) {
    PLIMSOLL_TRY(part.list.keep_within(room));
    PLIMSOLL_TRY(part.labels.keep_within(room));
  }
  return Ok{};
}

Result<std::string> ImageDataset::name(int64_t index, std::span<std::byte> scratch) const {
  const size_t part = state_->part_of(index);
  PLIMSOLL_ASSIGN(const ListedImage image,
                  state_->parts[part].list.read(index - state_->begin_of(part), scratch));
  return State::where(image);
}

Result<int32_t> ImageDataset::label(int64_t index, std::span<std::byte> scratch) const {
  const size_t part = state_->part_of(index);
  return state_->label(part, index - state_->begin_of(part), scratch);
}

Result<int32_t> ImageDataset::read(int64_t index, int64_t epoch, std::span<uint8_t> pixels,
                                   std::span<std::byte> scratch) const {
  const size_t part = state_->part_of(index);
  const int64_t within = index - state_->begin_of(part);
  PLIMSOLL_ASSIGN(const int32_t label, state_->label(part, within, scratch));
  PLIMSOLL_ASSIGN(const ListedImage image, state_->parts[part].list.read(within, scratch));
  const images::Draw draw{.seed = state_->options.seed,
                          .epoch = epoch,
                          .sample = index,
                          .augmentations = &state_->options.augmentations};
  Status loaded = state_->load(image, draw, pixels, scratch.subspan(static_cast<size_t>(kLookUpBytes)));
  if (loaded) return label;
  if (!state_->options.skips_damaged || loaded.error().code != ErrorCode::kBadData)
    return std::move(loaded).error();
  std::fill(pixels.begin(), pixels.end(), uint8_t{0});
  return datasets::kNoTarget;
}

}  // namespace plimsoll::corpora
