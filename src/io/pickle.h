// Python's pickle format, written front to back: dictionaries, lists, strings, integers, booleans and pairs,
// which is what a memory snapshot is made of. Protocol 2, without memo and with the few opcodes that
// PyTorch's viewer reads. Nothing in it can name a class, so that any unpickler may open it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::io {

/// Takes the file's next bytes. Errors: as the caller's.
using PickleSink = std::function<Status(std::span<const std::byte>)>;

/// One value, in the order of its text: begin_dict, key, value, key, value, …, end. Memory: kBufferBytes.
class PickleWriter {
 public:
  static constexpr size_t kBufferBytes = 1 << 16;
  /// Items of a list that stand on an unpickler's stack at once.
  static constexpr int kBatch = 1000;

  explicit PickleWriter(PickleSink sink);
  void begin_dict();
  void begin_list();
  /// Of the dictionary or list begun last. Checked that there is one.
  void end();
  void string(std::string_view utf8);
  void integer(int64_t value);
  void boolean(bool value);
  /// A tuple of two.
  void pair(int64_t first, int64_t second);
  /// In a dictionary.
  void entry(std::string_view key, std::string_view value) { string(key), string(value); }
  void entry(std::string_view key, int64_t value) { string(key), integer(value); }

  /// Ends the file. Errors: the first of the sink's.
  Status finish();

 private:
  struct Open {
    bool is_list = false;
    int in_batch = 0;
  };
  void begin(char opcode, bool is_list);
  /// Before each value: a list that has a batch on the stack takes it in.
  void begin_value();
  void put(char byte);
  template <class T>
  void put_number(T value);
  void put_integer(int64_t value);
  void flush();

  PickleSink sink_;
  std::string buffer_;
  std::vector<Open> open_;
  Status status_ = Ok{};
};

}  // namespace plimsoll::io
