// plimsoll data pack: images of many files into one.
#include <fmt/format.h>

#include <filesystem>

#include "base/host.h"
#include "base/numbers.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/data/data_json.h"
#include "cli/data/data_reading.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "corpora/images/pack_images.h"
#include "io/check_writable.h"
#include "io/file.h"
#include "io/scratch_folder.h"
#include "io/tree.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kDataPackFooter =
    R"(inputs: folders of class folders; .jsonl and .csv tables with "image" and "label"; .parquet and .arrow files with
datasets' Image feature; other packs.
formats: jpeg keeps the bytes of the files as they are, whatever their format; u8 decodes them, so that a run does not.
Name the output in data.train or data.eval.

examples:
  plimsoll data pack --input flowers/train --output flowers.pack
  plimsoll data pack --input flowers/train --output flowers.pack --format u8 --shortest 256
exit codes: 0 done, 2 usage, 65 bad data, 74 I/O, 75 stopped by a signal; unless 0, nothing is written)";

struct DataPackArguments {
  std::vector<std::string> inputs;
  std::string output;
  std::string format = "jpeg", alpha = "drop", orientation = "exif", interpolation = "bilinear";
  int64_t shortest = 0;
  ReadingArguments reading;
};

void add_data_pack_options(Parser c, DataPackArguments& a) {
  c.add_option("--input", a.inputs, "folders, tables or patterns, in this order")
      .required()
      .type_name("PATH");
  c.add_option("--output", a.output, "output file; an existing file is replaced")
      .required()
      .type_name("FILE");
  c.add_option("--format", a.format, "jpeg: the bytes of the files; u8: decoded pixels")
      .one_of({"jpeg", "u8"})
      .show_default();
  c.add_option("--shortest", a.shortest, "u8: resize larger images so that the shorter side has N pixels")
      .type_name("N");
  c.add_option("--interpolation", a.interpolation, "filter of --shortest")
      .one_of({"nearest", "bilinear", "bicubic", "lanczos"})
      .show_default();
  c.add_option("--alpha", a.alpha, "u8: transparent pixels, as data.images.alpha")
      .one_of({"drop", "white"})
      .show_default();
  c.add_option("--orientation", a.orientation, "u8: as data.images.orientation")
      .one_of({"exif", "ignore"})
      .show_default();
  c.add_option("--threads", a.reading.threads, "threads in total (default: all available CPUs)")
      .type_name("N");
  c.add_option("--on-error", a.reading.on_error, "images that cannot be used: fail, or skip and count them")
      .one_of({"fail", "skip"})
      .show_default();
  c.add_flag("--json", a.reading.json, "print JSON");
  c.footer(kDataPackFooter);
}

images::Processor processor_of(const DataPackArguments& a) {
  images::Processor processor;
  processor.alpha = a.alpha == "white" ? images::Alpha::kWhite : images::Alpha::kDrop;
  processor.orientation =
      a.orientation == "ignore" ? images::Orientation::kIgnore : images::Orientation::kExif;
  for (const auto word : {images::Interpolation::kNearest, images::Interpolation::kBilinear,
                          images::Interpolation::kBicubic, images::Interpolation::kLanczos})
    if (images::name(word) == a.interpolation) processor.interpolation = word;
  return processor;
}

Status check_pack_arguments(const DataPackArguments& a) {
  if (a.shortest < 0 || (a.shortest > 0 && a.format != "u8"))
    return Error{ErrorCode::kInvalidArgument, "--shortest needs a number of pixels and --format u8",
                 "--shortest", "add --format u8"};
  std::error_code code;
  for (const std::string& input : a.inputs)
    if (std::filesystem::equivalent(a.output, input, code))
      return Error{ErrorCode::kInvalidArgument, "the output is one of the inputs", a.output,
                   "choose another name"};
  return io::check_writable(a.output);
}

struct Packed {
  int64_t images = 0, bytes = 0, classes = 0;
  corpora::SkipCounts skipped = {};
  double seconds = 0;
};

Result<Packed> pack(const DataPackArguments& a) {
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(const io::ScratchFolder scratch, io::ScratchFolder::create("pack"));
  corpora::ImageEntries entries;
  for (const std::string& input : a.inputs) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> paths, io::expand_glob(input));
    for (const std::string& path : paths)
      PLIMSOLL_TRY(corpora::add_images(
          path, {.on_error = a.reading.when_unusable(), .packs_folder = scratch.path()}, entries));
  }
  const images::Processor processor = processor_of(a);
  Progress progress;
  const auto show = [&progress](const char* what) {
    return [&progress, what](int64_t done, int64_t total) {
      progress.show(static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, total)),
                    fmt::format("{} images, {} of {}", what, done, total));
    };
  };
  const Stop stop = [] { return stop_requested() != 0 ? std::string_view("a signal") : std::string_view(); };
  PLIMSOLL_ASSIGN(corpora::ScannedImages scanned,
                  corpora::scan_images(entries, {.processor = processor,
                                                 .on_error = a.reading.when_unusable(),
                                                 .num_threads = a.reading.num_threads(),
                                                 .progress = show("looking at"),
                                                 .stop = stop}));
  scanned.skipped.add(entries.skipped);
  PLIMSOLL_ASSIGN(const int64_t indexed, corpora::pack_images(a.output,
                                                              {.processor = processor,
                                                               .decoded = a.format == "u8",
                                                               .shortest = a.shortest,
                                                               .on_error = a.reading.when_unusable(),
                                                               .num_threads = a.reading.num_threads(),
                                                               .progress = show("packing"),
                                                               .stop = stop},
                                                              nullptr, entries, scanned));
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(a.output));
  return Packed{.images = indexed,
                .bytes = file.size_bytes(),
                .classes = std::ssize(entries.names) + std::ssize(corpora::names_of_ids(entries)),
                .skipped = std::move(scanned.skipped),
                .seconds = now_seconds() - start};
}

Status data_pack(const DataPackArguments& arguments) {
  PLIMSOLL_TRY(check_pack_arguments(arguments));
  PLIMSOLL_ASSIGN(const Packed packed, pack(arguments));
  if (arguments.reading.json) {
    fmt::print("{}\n", io::to_json(io::Tree::map({{"event", json_text("pack")},
                                                  {"output", json_text(arguments.output)},
                                                  {"format", json_text(arguments.format)},
                                                  {"images", io::Tree::of(packed.images)},
                                                  {"classes", io::Tree::of(packed.classes)},
                                                  {"skipped", skipped_tree(packed.skipped)},
                                                  {"output_bytes", io::Tree::of(packed.bytes)},
                                                  {"seconds", io::Tree::of(packed.seconds)}})));
    return Ok{};
  }
  Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
  table.add({"written", fmt::format("{} ({})", arguments.output, to_string(Bytes(packed.bytes)))});
  table.add({"images", grouped(packed.images)});
  table.add({"classes", grouped(packed.classes)});
  table.add({"time", fmt::format("{:.2f} s", packed.seconds)});
  add_skipped(table, packed.skipped);
  print_text(table.text());
  return Ok{};
}

}  // namespace

Command add_data_pack(Parser data) {
  return add_command<DataPackArguments>(data, "pack", "images of many files into one file",
                                        add_data_pack_options, data_pack);
}

}  // namespace plimsoll::cli
