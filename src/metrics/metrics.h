// Metrics of model outputs against labels, equal to scikit-learn's and scipy's defaults. Examples
// are added one by one, in order, so the values depend on nothing but the examples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll::metrics {

/// A metric's value; NaN where it is not defined (the correlation with a constant).
struct Value {
  std::string_view name;
  double value = 0;
};

/// Allocates nothing between construction and `values`, which allocates its result alone.
class Metrics {
 public:
  virtual ~Metrics() = default;
  /// Forgets all examples.
  virtual void clear() = 0;
  /// The next example: num_labels outputs of the model, and its labels as the factory below says.
  virtual void add(std::span<const float> outputs, std::span<const float> labels) = 0;
  /// Over all examples so far, in a fixed order of names.
  virtual std::vector<Value> values() = 0;
  /// Of examples with one class each: how many there are by class and predicted class, num_labels rows of as
  /// many, confusion_matrix of scikit-learn. Empty for other labels, and beyond kMostConfusionLabels.
  [[nodiscard]] virtual std::span<const uint32_t> confusion() const { return {}; }
};
/// More classes have no confusion matrix, which grows with their square.
inline constexpr int64_t kMostConfusionLabels = 256;

/// Which of the outputs is predicted: the first of the largest; the first that is not a number, where there
/// is one.
size_t largest(std::span<const float> outputs);

/// `labels`: the class. The class of the largest output is predicted, the first of several, as numpy.argmax.
///   accuracy   accuracy_score
///   f1         f1_score of class 1, of two classes alone: what GLUE reports for MRPC and QQP
///   f1_macro   f1_score(average="macro"): the mean over the classes that occur in truth or prediction
///   matthews   matthews_corrcoef; 0 where either side is of one class
std::unique_ptr<Metrics> single_label(int64_t num_labels);

/// The same of images.
///   accuracy        as single_label
///   top5_accuracy   top_k_accuracy_score(k=5): the share whose class is among the 5 with the largest
///   outputs;
///                   of equal outputs the later class comes first. 1 where there are no more than 5 classes
///   f1_macro        as single_label
std::unique_ptr<Metrics> ranked_label(int64_t num_labels);

/// `labels`: 0 or 1 each. A label is predicted where its probability is above 0.5: its output positive.
///   accuracy   accuracy_score: the share of examples all of whose labels are right
///   f1_macro   f1_score(average="macro"): the mean over all labels, 0 for one that never occurs
std::unique_ptr<Metrics> multi_label(int64_t num_labels);

/// `labels`: as many numbers as outputs.
///   pearson, spearman   scipy's pearsonr and spearmanr, ties by mean rank; of a single output
///   mse                 mean_squared_error, over outputs too
/// At most `max_examples` may be added between clears; correlations hold them all.
std::unique_ptr<Metrics> regression(int64_t num_outputs, int64_t max_examples);

/// `labels`: the first and the last token of an answer; outputs: a logit for each token to be the first, then
/// as many to be the last; of tokens that cannot be, one that is far below.
///   span_accuracy   the share whose largest logits, the first of several, are both the label's
std::unique_ptr<Metrics> token_spans(int64_t tokens);

/// Bytes that they take.
int64_t class_metrics_bytes(int64_t num_labels);
int64_t multi_label_bytes(int64_t num_labels);
int64_t regression_bytes(int64_t num_outputs, int64_t max_examples);

}  // namespace plimsoll::metrics
