// Source of the layout: datasets' Dataset.save_to_disk and DatasetDict.save_to_disk - state.json has
// _data_files: [{filename}], dataset_dict.json has splits: [names], each a folder.
#include "corpora/saved_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::corpora {
namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

bool is_folder(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code);
}

Result<io::Tree> read_json(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMostBytes));
  Result<io::Tree> tree = io::parse_json(text, {.max_bytes = kMostBytes, .max_nodes = 1'000'000});
  if (!tree) return std::move(tree).error().at(path);
  return tree;
}

/// The texts of a list, or of a member of each of its objects.
std::vector<std::string> texts_of(const io::Tree* list, const char* member) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const io::Tree& item : list->items) {
    const io::Tree* text = member == nullptr ? &item : item.find(member);
    if (text != nullptr && text->kind == io::Tree::Kind::kString) texts.push_back(text->text);
  }
  return texts;
}

Result<std::vector<std::string>> files_in(const std::string& folder) {
  std::error_code code;
  const std::string state = folder + "/state.json", splits = folder + "/dataset_dict.json";
  if (std::filesystem::exists(splits, code)) {
    PLIMSOLL_ASSIGN(const io::Tree tree, read_json(splits));
    const auto names = texts_of(tree.find("splits"), nullptr);
    return Error{ErrorCode::kBadData, fmt::format("the folder holds the splits {}", fmt::join(names, ", ")),
                 folder, fmt::format("name one of them: {}/{}", folder, names.empty() ? "train" : names[0])};
  }
  if (!std::filesystem::exists(state, code))
    return Error{ErrorCode::kBadData, "this is a folder, and none that datasets' save_to_disk wrote", folder,
                 fmt::format("name the files in it: \"{}/*\"", folder)};
  PLIMSOLL_ASSIGN(const io::Tree tree, read_json(state));
  std::vector<std::string> files;
  for (const std::string& name : texts_of(tree.find("_data_files"), "filename")) {
    const std::filesystem::path path = name;
    if (path.filename() != path || !name.ends_with(".arrow"))
      return Error{ErrorCode::kBadData,
                   fmt::format("state.json names '{}', which is no file of the folder", name.substr(0, 60)),
                   state, "save the data set again"};
    files.push_back(folder + "/" + name);
  }
  if (files.empty())
    return Error{ErrorCode::kBadData, "state.json names no file of data", state, "save the data set again"};
  return files;
}

}  // namespace

Result<std::vector<std::string>> expand_data(const std::string& pattern) {
  PLIMSOLL_ASSIGN(const std::vector<std::string> found, io::expand_glob(pattern));
  std::vector<std::string> files;
  for (const std::string& path : found) {
    if (!is_folder(path)) {
      files.push_back(path);
      continue;
    }
    std::string folder = path;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    PLIMSOLL_ASSIGN(const auto held, files_in(folder));
    files.insert(files.end(), held.begin(), held.end());
  }
  return files;
}

}  // namespace plimsoll::corpora
