#include "backends/cuda/source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"

namespace plimsoll::cuda {
namespace {

constexpr std::string_view kKernels = "backends/cuda/kernels/", kDeviceSource = ".cu";

/// The path that an #include of a file of ours names; empty: it is no such line.
std::string_view included(std::string_view line) {
  constexpr std::string_view kBegin = "#include \"";
  if (!line.starts_with(kBegin)) return {};
  line.remove_prefix(kBegin.size());
  return line.substr(0, line.find('"'));
}

class Expansion {
 public:
  void add(std::string_view path) {
    if (!seen_.insert(path).second) return;
    const SourceFile* file = find_kernel_file(path);
    PLIMSOLL_CHECK(file != nullptr, "no device source " + std::string(path));
    say(path, 1);
    int number = 0;
    for (std::string_view rest = file->text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++number;
      if (const std::string_view other = included(line); !other.empty()) {
        add(other);
        say(path, number + 1);
      } else if (line != "#pragma once") {
        text_.append(line).append("\n");
      } else {
        text_.append("\n");
      }
    }
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void say(std::string_view path, int line) {
    text_.append("#line " + std::to_string(line) + " \"").append(path).append("\"\n");
  }
  std::set<std::string_view> seen_;
  std::string text_;
};

}  // namespace

const SourceFile* find_kernel_file(std::string_view path) {
  for (const SourceFile& file : kernel_files())
    if (file.path == path) return &file;
  return nullptr;
}

std::vector<std::string> module_names() {
  std::vector<std::string> names;
  for (const SourceFile& file : kernel_files()) {
    if (!file.path.ends_with(kDeviceSource)) continue;
    std::string_view name = file.path;
    name.remove_prefix(kKernels.size());
    name.remove_suffix(kDeviceSource.size());
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string module_source(std::string_view module) {
  const SourceFile* file = find_kernel_file(std::string(kKernels).append(module).append(kDeviceSource));
  PLIMSOLL_CHECK(file != nullptr, "no module of kernels " + std::string(module));
  Expansion expansion;
  expansion.add(file->path);
  return expansion.take();
}

}  // namespace plimsoll::cuda
