// The base of sources over labelled examples: all of a source but how an example becomes a row.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "corpora/labelled/labelled_dataset.h"
#include "datasets/example_source.h"

namespace plimsoll::tasks {

class LabelledExamples : public datasets::ExampleSource {
 public:
  [[nodiscard]] int64_t num_examples() const override { return data_.size(); }
  [[nodiscard]] int64_t num_units() const override { return data_.num_tokens(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return data_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const override {
    return data_.length(index, scratch);
  }
  Status keep_within(int64_t& room) override { return data_.keep_within(room); }
  Result<uint64_t> fingerprint(std::span<std::byte> /*scratch*/) const override {
    return data_.fingerprint();
  }

 protected:
  explicit LabelledExamples(corpora::LabelledDataset data) : data_(std::move(data)) {}
  corpora::LabelledDataset data_;
};

}  // namespace plimsoll::tasks
