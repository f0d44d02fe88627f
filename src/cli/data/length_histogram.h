// Histogram of document lengths: percentiles and a small picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::cli {

/// Counts lengths in fixed memory (about 1 MiB): each length below 65,536 by itself, longer ones to 1/1024.
class LengthHistogram {
 public:
  LengthHistogram();
  /// A document of `tokens` (positive).
  void add(int64_t tokens);

  [[nodiscard]] int64_t num_documents() const { return documents_; }
  [[nodiscard]] int64_t num_tokens() const { return tokens_; }
  [[nodiscard]] int64_t shortest() const { return shortest_; }
  [[nodiscard]] int64_t longest() const { return longest_; }
  [[nodiscard]] double mean() const;
  /// The least length that at least `share` of the documents do not exceed; 0 where there is none.
  [[nodiscard]] int64_t percentile(double share) const;

  /// Documents and tokens of lengths [least, most], powers of two, from the first that is not empty to the
  /// last.
  struct Bin {
    int64_t least = 0, most = 0;
    int64_t documents = 0, tokens = 0;
  };
  [[nodiscard]] std::vector<Bin> bins() const;
  /// "shortest 3, 10 % 40, median 210, …".
  [[nodiscard]] std::string summary() const;
  /// The bins as lines with bars, at most `width` columns.
  [[nodiscard]] std::string picture(int width) const;

 private:
  std::vector<int64_t> counts_;
  std::vector<Bin> bins_;  // by log2
  int64_t documents_ = 0, tokens_ = 0, shortest_ = 0, longest_ = 0;
};

/// A bar of `share` (0 to 1) of `columns` characters, in eighths; a share that is not zero shows.
std::string bar(double share, int columns);

}  // namespace plimsoll::cli
