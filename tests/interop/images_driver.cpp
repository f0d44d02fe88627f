// Loads pictures and changes pixels for images_compare.py, which compiles it against a build's libraries.
//
//   driver load PREPROCESSOR [white] [ignore] [torch] [AUGMENTATIONS SEED EPOCH] < paths
//                          a path a line; answers per path: u8 1 and the pixels, or u8 0 and why not; each as
//                          u32 length and bytes. Scratch memory is exactly what scratch_bytes says.
//   driver json PREPROCESSOR                  the file that is written for it
//   driver change NUMBER MAGNITUDE HEIGHT WIDTH < pixels      one change of auto_augment.h
//   driver hue SHIFT HEIGHT WIDTH < pixels
//   driver seconds PREPROCESSOR AUGMENTATIONS < paths         the thread's seconds for loading each path,
//   summed
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "images/adjust.h"
#include "images/auto_augment.h"
#include "images/load.h"
#include "io/json.h"

namespace {

using namespace plimsoll;

std::string text_of(std::istream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

std::string file_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return text_of(file);
}

void answer(bool ok, std::string_view bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  std::cout.put(ok ? 1 : 0).write(reinterpret_cast<const char*>(&size), sizeof size) << bytes;
}

struct Settings {
  images::Processor processor;
  images::Augmentations augmentations;
  images::Draw draw;
};

Status load_one(const std::string& file, const Settings& settings, std::string& pixels,
                std::vector<std::byte>& scratch) {
  const std::span bytes(reinterpret_cast<const std::byte*>(file.data()), file.size());
  PLIMSOLL_ASSIGN(const images::ImageInfo info, images::probe(bytes));
  PLIMSOLL_TRY(images::check_picture(info, settings.processor));
  const auto* augmentations = settings.draw.augmentations;
  scratch.resize(static_cast<size_t>(images::scratch_bytes(info, settings.processor, augmentations)) + 1);
  return images::load(bytes, settings.processor, &settings.draw,
                      {reinterpret_cast<uint8_t*>(pixels.data()), pixels.size()},
                      std::span(scratch).subspan(1));
}

Settings settings_of(const std::vector<std::string>& arguments) {
  Settings settings{.processor = images::read_processor(arguments[0]).value()};
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "white") settings.processor.alpha = images::Alpha::kWhite;
    if (arguments[i] == "ignore") settings.processor.orientation = images::Orientation::kIgnore;
    if (arguments[i] == "torch") settings.processor.backend = images::Backend::kTorch;
    if (arguments[i].starts_with("[")) {
      settings.augmentations = images::parse_augmentations(io::parse_json(arguments[i]).value()).value();
      settings.draw = {.seed = std::stoull(arguments[i + 1]), .epoch = std::stoll(arguments[i + 2])};
    }
  }
  return settings;
}

void load_all(Settings settings) {
  if (!settings.augmentations.empty()) settings.draw.augmentations = &settings.augmentations;
  std::string path;
  std::vector<std::byte> scratch;
  std::string pixels(static_cast<size_t>(settings.processor.height * settings.processor.width * 3), '\0');
  for (; std::getline(std::cin, path); ++settings.draw.sample) {
    const Status status = load_one(file_of(path), settings, pixels, scratch);
    answer(status.ok(), status.ok() ? pixels : status.error().message());
  }
}

void seconds(Settings settings) {
  if (!settings.augmentations.empty()) settings.draw.augmentations = &settings.augmentations;
  std::vector<std::string> files;
  for (std::string path; std::getline(std::cin, path);) files.push_back(file_of(path));
  std::vector<std::byte> scratch;
  std::string pixels(static_cast<size_t>(settings.processor.height * settings.processor.width * 3), '\0');
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  for (const std::string& file : files) {
    (void)load_one(file, settings, pixels, scratch).ok();
    ++settings.draw.sample;
  }
  std::cout << now() - start << "\n";
}

void change(const std::vector<std::string>& arguments, bool hue) {
  std::string pixels = text_of(std::cin);
  std::vector<uint8_t> before(pixels.size());
  const std::span bytes(reinterpret_cast<uint8_t*>(pixels.data()), pixels.size());
  const double amount = std::stod(arguments[hue ? 0 : 1]);
  const size_t size = hue ? 1 : 2;
  if (hue) {
    images::adjust_hue(bytes, amount);
  } else {
    images::apply_change(static_cast<images::Change>(std::stoi(arguments[0])), amount,
                         {bytes, before, std::stoll(arguments[size]), std::stoll(arguments[size + 1])});
  }
  std::cout << pixels;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const std::vector<std::string> arguments(argv + 2, argv + argc);
  if (what == "load") load_all(settings_of(arguments));
  if (what == "json") std::cout << images::processor_json(settings_of(arguments).processor);
  if (what == "seconds") seconds(settings_of(arguments));
  if (what == "change" || what == "hue") change(arguments, what == "hue");
  return 0;
}
