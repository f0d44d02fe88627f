// The features of a damaged image are all of one NaN that no arithmetic gives.
#include "corpora/images/image_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "io/checksum.h"

namespace plimsoll::corpora {
namespace {

constexpr float kDamaged = std::bit_cast<float>(0xffffffffU);
bool is_damaged(float feature) {
  return std::bit_cast<uint32_t>(feature) == std::bit_cast<uint32_t>(kDamaged);
}

int64_t row_bytes(int64_t features) { return features * static_cast<int64_t>(sizeof(float)); }

class FeatureSource final : public datasets::ExampleSource {
 public:
  FeatureSource(ImageDataset images, io::ReadFile file)
      : images_(std::move(images)), file_(std::move(file)) {}
  [[nodiscard]] int64_t num_examples() const override { return images_.size(); }
  [[nodiscard]] int64_t num_units() const override { return images_.size(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return image_scratch_bytes(0); }
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> scratch) const override {
    const std::span<float> features = datasets::row_as<float>(row[0]);
    PLIMSOLL_TRY(file_.read_at(index * row_bytes(std::ssize(features)), std::as_writable_bytes(features)));
    PLIMSOLL_ASSIGN(int32_t label, images_.label(index, scratch));
    if (is_damaged(features[0])) {
      std::ranges::fill(features, 0.0F);
      label = datasets::kNoTarget;
    }
    datasets::row_as<int32_t>(row[1])[0] = label;
    return datasets::ExampleCounts{1, label == datasets::kNoTarget ? 0 : 1};
  }
  Result<std::string> name(int64_t index, std::span<std::byte> scratch) const override {
    return images_.name(index, scratch);
  }
  Status keep_within(int64_t& room) override {
    PLIMSOLL_TRY(images_.keep_within(room));
    return io::keep_within(file_, room);
  }
  /// The images': a run goes on with or without their features.
  Result<uint64_t> fingerprint(std::span<std::byte> /*scratch*/) const override {
    return images_.fingerprint();
  }

 private:
  ImageDataset images_;
  io::ReadFile file_;
};

}  // namespace

std::string features_path(std::span<const std::string> lists, const ImageDataset& images,
                          const std::string& key) {
  io::Checksum sum;
  sum.add(fmt::format("{} {}", key, images.fingerprint()));
  return fmt::format("{}/features-{}.f32", io::folder_of(lists.front()), io::checksum_text(sum.value()));
}

Result<FeatureWriter> FeatureWriter::create(const std::string& path, int64_t images, int64_t features) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  PLIMSOLL_TRY(file.reserve(images * row_bytes(features)));
  return FeatureWriter(std::move(file), features);
}

Status FeatureWriter::add_damaged() {
  return add(std::vector<float>(static_cast<size_t>(features_), kDamaged));
}

Status FeatureWriter::write(std::span<const std::byte> bytes) {
  PLIMSOLL_TRY(file_.write_at(bytes_, bytes));
  bytes_ += std::ssize(bytes);
  return Ok{};
}

bool has_features(const std::string& path, int64_t images, int64_t features) {
  const auto file = io::ReadFile::open(path);
  return file && file->size_bytes() == images * row_bytes(features);
}

Result<std::unique_ptr<datasets::ExampleSource>> open_features(std::span<const std::string> lists,
                                                               const ImageDatasetOptions& options,
                                                               const std::string& key, int64_t features) {
  PLIMSOLL_ASSIGN(ImageDataset images, ImageDataset::open(lists, options));
  const std::string path = features_path(lists, images, key);
  if (!has_features(path, images.size(), features))
    return Error{ErrorCode::kBadData, "the features of the images are gone, or cut off", path,
                 "run again: this computes them"};
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  return std::unique_ptr<datasets::ExampleSource>(
      std::make_unique<FeatureSource>(std::move(images), std::move(file)));
}

}  // namespace plimsoll::corpora
