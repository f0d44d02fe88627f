#include "base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace plimsoll {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

/// What the two versions of control groups call the same. The kernel's
/// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
struct Version {
  const char* file_system;             ///< in mountinfo
  std::vector<const char*> limits;     ///< files
  const char* usage;                   ///< file
  std::vector<const char*> gives_way;  ///< keys of memory.stat that count into usage
  const char* mapped;                  ///< of these what is mapped, and so in use
  const char* hierarchical;  ///< key of memory.stat: the least limit above, seen or not; "" for none
};

const Version kV1{"cgroup",
                  {"memory.limit_in_bytes"},
                  "memory.usage_in_bytes",
                  {"total_active_file", "total_inactive_file"},
                  "total_mapped_file",
                  "hierarchical_memory_limit"};
const Version kV2{"cgroup2",        {"memory.max", "memory.high"},
                  "memory.current", {"active_file", "inactive_file", "slab_reclaimable"},
                  "file_mapped",    ""};

/// As much as can be read. An iterator over the buffer would throw where reading fails.
std::string content(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first number of `text`; nothing for "max" or where there is none.
std::optional<int64_t> number(const std::string& text) {
  std::istringstream stream(text);
  int64_t value = 0;
  if (!(stream >> value) || value < 0) return std::nullopt;
  return value;
}

/// The number on the line that begins with the word `key`.
std::optional<int64_t> number_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > key.size() && line.starts_with(key) &&
        (line[key.size()] == ' ' || line[key.size()] == '\t'))
      return number(line.substr(key.size()));
  return std::nullopt;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

/// mountinfo writes blanks and backslashes as \ and three octal digits.
std::string unescaped(const std::string& text) {
  std::string out;
  const auto octal = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '7'; };
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  return out;
}

/// A part of a hierarchy, `root` and what lies below, that is seen at `point`.
struct Mount {
  std::string root, point;
};

std::vector<Mount> mounts_of(const Version& version, const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string skipped, file_system, source, options;
    Mount mount;
    before >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    after >> file_system >> source >> options;
    if (file_system != version.file_system) continue;
    if (&version == &kV1 && !has_word(options, "memory")) continue;
    mounts.push_back({unescaped(mount.root), unescaped(mount.point)});
  }
  return mounts;
}

/// The process's group in the hierarchy of `version`, as /proc/self/cgroup names it: "id:controllers:path".
std::optional<std::string> group_of(const Version& version, const std::string& groups) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        &version == &kV1 ? has_word(controllers, "memory") : controllers.empty() && line.starts_with("0:");
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The way from a mount's root down to `group`; nothing where the group does not lie below it, as far as a
/// process within a namespace can tell.
std::optional<std::string> way_down(const std::string& root, const std::string& group) {
  std::string rest = group;
  if (root != "/") {
    if (!group.starts_with(root) || (group.size() > root.size() && group[root.size()] != '/'))
      return std::nullopt;
    rest = group.substr(root.size());
  }
  if (rest.find("/..") != std::string::npos) return std::nullopt;
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  return rest;
}

class Reader {
 public:
  explicit Reader(const std::string& root) : root_(root) {}

  MachineMemory read() {
    const std::string meminfo = content(root_ + "/proc/meminfo");
    memory_.physical_bytes = number_of(meminfo, "MemTotal:").value_or(0) * 1024;
    memory_.limit_bytes = memory_.physical_bytes;
    memory_.available_bytes = number_of(meminfo, "MemAvailable:").value_or(0) * 1024;
    const std::string groups = content(root_ + "/proc/self/cgroup"),
                      mountinfo = content(root_ + "/proc/self/mountinfo");
    for (const Version* version : {&kV2, &kV1})
      if (const auto group = group_of(*version, groups))
        read_hierarchy(*version, mounts_of(*version, mountinfo), *group);
    return memory_;
  }

 private:
  /// Where no mount is known to hold the group, what is mounted is all that can be seen of it: within a
  /// container the mount's root is the container's own group or one above it.
  void read_hierarchy(const Version& version, const std::vector<Mount>& mounts, const std::string& group) {
    bool found = false;
    for (const Mount& mount : mounts)
      if (const auto down = way_down(mount.root, group)) {
        found = true;
        // From above: of the same limits the highest is named, where it was set.
        for (size_t end = 0; end < down->size(); end = std::min(down->find('/', end + 1), down->size()))
          read_group(version, mount.point + down->substr(0, end));
        read_group(version, mount.point + *down);
      }
    if (!found)
      for (const Mount& mount : mounts) read_group(version, mount.point);
  }

  void read_group(const Version& version, const std::string& folder) {
    const std::string stat = content(root_ + folder + "/memory.stat");
    int64_t least = kNone;
    const auto bound = [&](std::optional<int64_t> limit, const std::string& file) {
      if (!limit) return;
      least = std::min(least, *limit);
      if (*limit >= memory_.limit_bytes) return;
      memory_.limit_bytes = *limit;
      memory_.limited_by = file;
    };
    for (const char* limit : version.limits) {
      const std::string file = folder + "/" + limit;
      bound(number(content(root_ + file)), file);
    }
    if (*version.hierarchical != '\0') bound(number_of(stat, version.hierarchical), folder + "/memory.stat");
    if (least == kNone) return;
    const int64_t usage = number(content(root_ + folder + "/" + version.usage)).value_or(0);
    int64_t gives_way = -number_of(stat, version.mapped).value_or(0);
    for (const char* key : version.gives_way) gives_way += number_of(stat, key).value_or(0);
    const int64_t used = usage - std::clamp<int64_t>(gives_way, 0, usage);
    memory_.available_bytes = std::min(memory_.available_bytes, std::max<int64_t>(0, least - used));
  }

  const std::string& root_;
  MachineMemory memory_;
};

}  // namespace

MachineMemory read_machine_memory(const std::string& root) { return Reader(root).read(); }

}  // namespace plimsoll
