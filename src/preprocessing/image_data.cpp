#include "preprocessing/image_data.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/units.h"
#include "corpora/images/image_pack.h"
#include "corpora/images/pack_images.h"
#include "corpora/images/scan_images.h"
#include "corpora/labelled/label_file.h"
#include "images/load.h"
#include "io/checksum.h"
#include "io/file.h"
#include "preprocessing/cache_key.h"
#include "preprocessing/image_labels.h"
#include "preprocessing/image_processor.h"

namespace plimsoll::preprocessing {
namespace {

/// Part of every list's name: raised when the same files and settings would give another list.
constexpr std::string_view kImagesVersion = "images 3";

corpora::OnError on_error_of(const settings::RunConfig& config) {
  return config.data.on_error == "skip" ? corpora::OnError::kSkip : corpora::OnError::kFail;
}

/// A damaged pair is made again.
bool is_intact_list(const std::string& path) {
  if (!io::is_file(path)) return false;
  const auto list = corpora::ImageList::open(path);
  const auto labels = corpora::LabelFile::open(corpora::list_labels(path));
  return list && labels && labels->shard_hash() == list->content_hash() && labels->size() == list->size();
}

/// Keeps those on one side of the split by the hash of the image's name.
void keep_side(corpora::ImageEntries& entries, datasets::SplitSide side, double eval_fraction) {
  if (side == datasets::SplitSide::kAll) return;
  const bool eval = side == datasets::SplitSide::kEval;
  std::erase_if(entries.images, [&](const corpora::ImageEntry& image) {
    return datasets::on_eval_side(io::checksum(image.name), eval_fraction) != eval;
  });
}

/// Keeps `most` images: the first of tables, and of folders the first of each class in turn.
void keep_first(corpora::ImageEntries& entries, int64_t most) {
  if (most == 0 || most >= static_cast<int64_t>(entries.images.size())) return;
  std::vector<size_t> order(entries.images.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<int64_t> turn(order.size(), 0);
  std::map<uint32_t, int64_t> seen;
  for (size_t i = 0; i < order.size(); ++i)
    if (entries.images[i].line == 0) turn[i] = seen[entries.images[i].place]++;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return turn[a] < turn[b]; });
  order.resize(static_cast<size_t>(most));
  std::sort(order.begin(), order.end());
  std::vector<corpora::ImageEntry> kept;
  for (const size_t i : order) kept.push_back(std::move(entries.images[i]));
  entries.images = std::move(kept);
}

std::string absolute(const std::string& path) {
  std::error_code code;
  return std::filesystem::absolute(path, code).string();
}

/// When a file was written and how long it is; what it holds is looked into when it is read.
std::string state_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "none";
  return fmt::format("{} {} {}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

/// Where the images of a list lie that were packed for it.
std::string list_pixels(const std::string& list_path) {
  return list_path.substr(0, list_path.rfind('.')) + ".pixels";
}

/// The files that hold several of the images.
std::set<std::string> packs_of(const corpora::ImageEntries& entries) {
  std::set<std::string> packs;
  for (const corpora::ImageEntry& image : entries.images)
    if (image.bytes > 0) packs.insert(image.path);
  return packs;
}

void tell(const corpora::ScannedImages& scanned, const corpora::ImageEntries& entries,
          const PrepareDataOptions& options) {
  if (options.progress) options.progress(1, {});
  if (!options.note) return;
  const corpora::ImageListSummary& all = scanned.summary;
  options.note(fmt::format("listed {} image{}, the largest of {} x {} pixels", scanned.facts.size(),
                           scanned.facts.size() == 1 ? "" : "s", all.width, all.height));
  const auto count = [&](int64_t images, std::string_view what) {
    if (images > 0) options.note(fmt::format("{} image{} {}", images, images == 1 ? "" : "s", what));
  };
  count(all.num_animated, "with several frames: only the first is read");
  count(all.num_profiles, "with a colour profile, which is ignored");
  if (entries.num_others > 0)
    options.note(fmt::format("left out {} file{} that {} no image by {} name", entries.num_others,
                             entries.num_others == 1 ? "" : "s", entries.num_others == 1 ? "is" : "are",
                             entries.num_others == 1 ? "its" : "their"));
  for (const auto& [reason, number] : scanned.skipped.by_reason)
    options.note(fmt::format("skipped {} image{}: {}", number, number == 1 ? "" : "s", reason));
}

}  // namespace

Result<ImagePreparation::Source> ImagePreparation::collect(const std::vector<std::string>& entries,
                                                           datasets::SplitSide side, bool eval) const {
  Source source{.eval = eval};
  for (const std::string& entry : entries) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> paths, io::expand_glob(entry));
    for (const std::string& path : paths)
      PLIMSOLL_TRY(corpora::add_images(path,
                                       {.on_error = on_error_of(config_),
                                        .packs_folder = training_data_options(config_, eval).cache_folder,
                                        .makes_packs = lists_},
                                       source.entries));
  }
  keep_side(source.entries, side, config_.data.eval_fraction);
  const auto& most = eval ? config_.data.max_eval_samples : config_.data.max_train_samples;
  keep_first(source.entries, most.value_or(0));
  if (!source.entries.images.empty()) return source;
  return Error{ErrorCode::kBadData,
               eval ? "there is no image to evaluate on" : "there is no image to train on",
               entries.empty() ? std::string() : entries.front(), "name more images"};
}

/// One source for each entry where they mix.
Status ImagePreparation::collect_train(datasets::SplitSide side, bool eval) {
  const settings::DataSettings& data = config_.data;
  if (data.weights.empty()) {
    PLIMSOLL_ASSIGN(Source source, collect(data.train, side, eval));
    sources_.push_back(std::move(source));
  }
  for (size_t i = 0; i < data.weights.size(); ++i) {
    PLIMSOLL_ASSIGN(Source source, collect({data.train[i]}, side, eval));
    source.weight = eval ? 1 : data.weights[i];
    if (eval) source.set = data.train[i];
    sources_.push_back(std::move(source));
  }
  return Ok{};
}

Status ImagePreparation::collect() {
  const settings::DataSettings& data = config_.data;
  const bool splits = data.eval_fraction > 0;
  if (options_.train)
    PLIMSOLL_TRY(collect_train(splits ? datasets::SplitSide::kTrain : datasets::SplitSide::kAll, false));
  if (splits) return collect_train(datasets::SplitSide::kEval, true);
  for (const settings::EvalFiles::Set& set : data.eval.sets()) {
    PLIMSOLL_ASSIGN(Source source, collect(set.files, datasets::SplitSide::kAll, true));
    source.set = set.name;
    sources_.push_back(std::move(source));
  }
  return Ok{};
}

Status ImagePreparation::name_classes() {
  std::vector<corpora::ImageEntries*> all;
  for (Source& source : sources_) all.push_back(&source.entries);
  PLIMSOLL_ASSIGN(class_order_, name_image_ids(config_, model_, all, options_.train));
  return Ok{};
}

/// Of what is trained on; else of what is evaluated.
Result<io::Labels> ImagePreparation::labels() const {
  corpora::LabelSummary found;
  for (const Source& source : sources_)
    if (source.eval != options_.train) corpora::summarize(source.entries, found);
  return image_labels(config_, model_, found, options_.train, class_order_);
}

std::string ImagePreparation::path_of(const Source& source) const {
  CacheKey key;
  key.add(kImagesVersion);
  key.add(images::processor_json(images_.processor));
  // What a processor file does not say, and what decides which pictures fit and what reading them takes.
  key.add(fmt::format("{} {} {} {}", images_.processor.max_pixels, name(images_.processor.orientation),
                      name(images_.processor.backend), config_.data.on_error));
  key.add(io::to_yaml_flow(config_.data.images.augment.entries));
  key.add(config_.data.images.cache + (source.eval ? " eval" : ""));
  // A list says what reading takes: another version of this program may take more.
  constexpr images::ImageInfo kPhoto = {.width = 4000, .height = 3000};
  key.add(std::to_string(images::scratch_bytes(kPhoto, images_.processor, &images_.augmentations)));
  const std::string* looked_at = nullptr;  // the images of a pack have one path
  std::string where, state;
  for (const corpora::ImageEntry& image : source.entries.images) {
    if (looked_at == nullptr || *looked_at != image.path) {
      looked_at = &image.path;
      where = absolute(image.path);
      state = state_of(image.path);
    }
    key.add(image.path);  // the list has it so
    key.add(image.name);
    key.add(fmt::format("{} {}", image.offset, image.bytes));
    key.add(where);
    key.add(state);
    key.add(fmt::format("{} {} {}", static_cast<int>(image.kind),
                        image.kind == corpora::RawLabelKind::kName
                            ? source.entries.names[static_cast<size_t>(image.value)]
                            : fmt::format("{}", image.value),
                        source.entries.place_of(image)));
  }
  const std::string folder = training_data_options(config_, /*eval=*/false).cache_folder;
  return fmt::format("{}/images-{}.images", folder, key.text());
}

/// Whether the images go to one file of the cache. Those that are in one already are not copied as they are.
bool ImagePreparation::is_packed(const Source& source) const {
  const std::string& cache = config_.data.images.cache;
  if (cache != "jpeg") return cache == "u8";
  return std::any_of(source.entries.images.begin(), source.entries.images.end(),
                     [](const corpora::ImageEntry& image) { return image.bytes == 0; });
}

Status ImagePreparation::pack(Source& source, const std::string& path,
                              corpora::ScannedImages& scanned) const {
  const images::Augmentations* augmentations = source.eval ? nullptr : &images_.augmentations;
  // A random crop is of the whole image; all else comes after the image is resized.
  const bool crops = augmentations != nullptr && !augmentations->empty() &&
                     augmentations->front().kind == images::Augmentation::Kind::kRandomResizedCrop;
  corpora::PackImages how{.processor = images_.processor,
                          .decoded = config_.data.images.cache == "u8",
                          .ready = config_.data.images.cache == "u8" && !crops,
                          .on_error = on_error_of(config_),
                          .num_threads = options_.num_threads,
                          .stop = options_.stop};
  if (options_.progress)
    how.progress = [&](int64_t done, int64_t total) {
      options_.progress(static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, total)),
                        fmt::format("packing images, {} of {}", done, total));
    };
  PLIMSOLL_TRY(corpora::pack_images(path, how, augmentations, source.entries, scanned));
  if (options_.progress) options_.progress(1, {});
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  if (options_.note)
    options_.note(fmt::format("packed them into {} ({})", path, to_string(Bytes(file.size_bytes()))));
  return Ok{};
}

Status ImagePreparation::make_list(Source& source, const std::string& path) const {
  PLIMSOLL_TRY(io::create_writable_directory(io::folder_of(path)));
  corpora::ScanImages how{.processor = images_.processor,
                          .augmentations = images_.augmentations.empty() ? nullptr : &images_.augmentations,
                          .on_error = on_error_of(config_),
                          .num_threads = options_.num_threads,
                          .stop = options_.stop};
  if (options_.progress)
    how.progress = [&](int64_t done, int64_t total) {
      options_.progress(static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, total)),
                        fmt::format("looking at images, {} of {}", done, total));
    };
  PLIMSOLL_ASSIGN(corpora::ScannedImages scanned, corpora::scan_images(source.entries, how));
  scanned.skipped.add(source.entries.skipped);
  tell(scanned, source.entries, options_);
  if (is_packed(source)) PLIMSOLL_TRY(pack(source, list_pixels(path), scanned));
  PLIMSOLL_TRY(corpora::write_image_list(path, source.entries, scanned.facts, scanned.summary));
  return Ok{};
}

Result<std::string> ImagePreparation::listed(Source& source) {
  const std::string path = path_of(source);
  if (lists_ && lease_ != nullptr) {
    for (const std::string& file : {path, corpora::list_labels(path), list_pixels(path)})
      PLIMSOLL_TRY(lease_->use(file));
    for (const std::string& pack : packs_of(source.entries)) PLIMSOLL_TRY(lease_->use(pack));
  }
  const bool is_there = !is_packed(source) || corpora::is_whole_image_pack(list_pixels(path));
  if (is_there && is_intact_list(path)) return path;
  if (!lists_) return std::string();
  PLIMSOLL_TRY(make_list(source, path));
  return path;
}

/// That each image has one of the classes, and that each class has an image to train on.
Status ImagePreparation::check(const RunData& ready) const {
  for (const bool eval : {false, true}) {
    std::vector<corpora::LabelFile> files;
    for (const datasets::DataFiles& source : eval ? ready.eval : ready.train)
      for (const std::string& path : source.paths) {
        PLIMSOLL_ASSIGN(corpora::LabelFile file, corpora::LabelFile::open(corpora::list_labels(path)));
        files.push_back(std::move(file));
      }
    std::vector<const corpora::LabelFile*> pointers;
    for (const corpora::LabelFile& file : files) pointers.push_back(&file);
    PLIMSOLL_TRY(corpora::check_labels(*ready.labels, pointers, /*all_occur=*/!eval && options_.train,
                                       eval ? "data.eval" : "data.train"));
  }
  return Ok{};
}

Result<RunData> ImagePreparation::operator()() {
  PLIMSOLL_ASSIGN(images_, image_inputs(config_, model_, 0));
  PLIMSOLL_TRY(collect());
  PLIMSOLL_TRY(name_classes());
  RunData ready;
  ready.buckets.lengths = {config_.data.sequence_length};
  PLIMSOLL_ASSIGN(ready.labels, labels());
  bool is_missing = false;
  for (Source& source : sources_) {
    PLIMSOLL_ASSIGN(std::string path, listed(source));
    is_missing = is_missing || path.empty();
    if (path.empty()) continue;
    PLIMSOLL_ASSIGN(const corpora::ImageList list, corpora::ImageList::open(path));
    ready.reading_bytes = std::max(ready.reading_bytes, list.summary().reading_bytes);
    if (source.eval) ready.num_eval += list.size();
    if (source.eval && !source.set.empty()) ready.eval_names.push_back(source.set);
    (source.eval ? ready.eval : ready.train).push_back({{std::move(path)}, source.weight});
  }
  if (!is_missing) {
    PLIMSOLL_TRY(check(ready));
    return ready;
  }
  RunData known;
  known.buckets = ready.buckets;
  known.labels = ready.labels;
  return known;
}

Result<RunData> ImagePreparation::look() {
  lists_ = false;
  return (*this)();
}

}  // namespace plimsoll::preprocessing
