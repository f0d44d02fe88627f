// A folder that is either whole or not there: written under a hidden name beside its place, renamed onto it
// at the end. What a killed process leaves behind has a hidden name, and `clean_directory` knows it.
//
//   .NAME.tmp         being written; after an exchange what stood there before
//   .NAME.old         given up, being removed; or hidden until the folder that replaces it has its name
//   .NAME.previous    what stood there, where the file system cannot exchange two names
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/descriptor.h"
#include "io/file.h"

namespace plimsoll::io {

class AtomicDirectory {
 public:
  /// Makes the hidden folder beside `path`, empty. Errors: kIo, also where `path` is there and no folder.
  static Result<AtomicDirectory> create(const std::string& path);
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&& other) noexcept;
  /// Removes the hidden folder where it was not published.
  ~AtomicDirectory();

  /// A new file in it; it is to be closed before `publish`.
  [[nodiscard]] Result<OutputFile> create_file(std::string_view name) const;
  /// Where it will be.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Where it is until then; empty once published.
  [[nodiscard]] const std::string& hidden_path() const { return hidden_; }
  /// Makes the folder durable and gives it its name. What stood there is replaced in one step and then
  /// removed; what of it cannot be removed stays hidden, no error. Errors: kIo; the old folder is then still
  /// there, by its hidden name where only the parent could not be synced.
  Status publish();

 private:
  AtomicDirectory(std::string path, std::string hidden)
      : path_(std::move(path)), hidden_(std::move(hidden)) {}
  bool take_place();
  std::string path_;
  std::string hidden_;  ///< empty once published
};

/// Where an AtomicDirectory for `path` is written before it is published.
std::string unpublished_path(const std::string& path);

/// Removes a folder: first its name, durably, then its content. Errors: kIo for the name.
Status retire_directory(const std::string& path);
/// The first half of that for several: afterwards none of the names is there. `hidden` receives what is left
/// to remove with remove_hidden, or to bring back with show_hidden, after an error too. Errors: kIo.
Status hide_directories(const std::vector<std::string>& paths, std::vector<std::string>& hidden);
/// What cannot be removed stays, for clean_directory.
void remove_hidden(const std::vector<std::string>& hidden);
/// Undoes hide_directories, as far as the operating system lets it.
void show_hidden(const std::vector<std::string>& hidden);
/// Removes what killed processes left in `directory` of folders whose names `is_ours` knows, and gives back
/// its name to one that was to be replaced. With `none_left`, also to those which were hidden for a folder
/// that was never published: its .tmp is still there. What cannot be removed stays. Errors: kIo.
Status clean_directory(const std::string& directory, const std::function<bool(std::string_view)>& is_ours,
                       bool none_left = false);

/// What the disk that `directory` lies on, or would where it is not there yet, has to give; nothing where
/// that cannot be known.
std::optional<int64_t> free_space(const std::string& directory);
/// Errors: kIo naming both figures where the disk that `directory` lies on has fewer bytes to give.
Status check_free_space(const std::string& directory, int64_t bytes);

/// Keeps a second process out of a folder, as long as it lives: flock on `<directory>/.lock`.
class DirectoryLock {
 public:
  /// Errors: kIo, where another process holds it with that process's number. A file system without locks is
  /// let pass.
  static Result<DirectoryLock> take(const std::string& directory);

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  Descriptor fd_;
};

}  // namespace plimsoll::io
