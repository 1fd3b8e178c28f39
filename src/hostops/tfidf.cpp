// TfIdfVectorizer: counts of known n-grams, with skips between their words.
#include <algorithm>
#include <map>

#include "hostops/helpers.h"
#include "hostops/ops.h"
#include "support/strings.h"

namespace locution::hostops {
namespace {

struct Vectoriser {
  int64_t minLength = 1, maxLength = 1, maxSkip = 0;
  std::string mode;
  std::vector<int64_t> indexes;
  std::vector<double> weights;
  int64_t width = 0;

  Status read(const Attrs& attrs) {
    minLength = intAttr(attrs, "min_gram_length", 1);
    maxLength = intAttr(attrs, "max_gram_length", 1);
    maxSkip = intAttr(attrs, "max_skip_count", 0);
    mode = textAttr(attrs, "mode", "TF");
    indexes = intsAttr(attrs, "ngram_indexes");
    weights = floatsAttr(attrs, "weights");
    if (minLength < 1 || maxLength < minLength || maxSkip < 0)
      return Status::error("n-grams of length " + std::to_string(minLength) + " to " + std::to_string(maxLength) +
                           " with up to " + std::to_string(maxSkip) + " skips");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
      return Status::error("mode must be TF, IDF or TFIDF, but is " + quoted(mode));
    if (!weights.empty() && weights.size() != indexes.size())
      return Status::error("there are " + std::to_string(weights.size()) + " weights for " +
                           std::to_string(indexes.size()) + " n-grams");
    for (int64_t i : indexes) {
      if (i < 0) return Status::error("n-gram index " + std::to_string(i) + " is negative");
      width = std::max(width, i + 1);
    }
    return Status::ok();
  }

  /// The pool cut into n-grams: 1-grams up to starts[1], then 2-grams, and so on.
  template <typename T>
  Status readPool(const std::vector<T>& pool, const std::vector<int64_t>& starts,
                  std::map<std::vector<T>, size_t>& out) const {
    size_t ordinal = 0;
    for (size_t n = 0; n < starts.size(); ++n) {
      int64_t from = starts[n], to = n + 1 < starts.size() ? starts[n + 1] : static_cast<int64_t>(pool.size());
      auto length = static_cast<int64_t>(n) + 1;
      if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()) || (to - from) % length != 0)
        return Status::error("ngram_counts does not fit a pool of " + std::to_string(pool.size()) + " items");
      for (; from < to; from += length, ++ordinal) {
        if (ordinal >= indexes.size()) return Status::error("there are more n-grams than ngram_indexes");
        out.emplace(std::vector<T>(pool.begin() + from, pool.begin() + from + length), ordinal);
      }
    }
    return Status::ok();
  }

  template <typename T>
  void countRow(const std::vector<T>& row, const std::map<std::vector<T>, size_t>& known, float* out) const {
    std::vector<int64_t> counts(indexes.size(), 0);
    auto columns = static_cast<int64_t>(row.size());
    std::vector<T> gram;
    for (int64_t n = minLength; n <= std::min(maxLength, columns); ++n) {
      // Skips mean nothing to single words.
      for (int64_t step = 1; step <= (n == 1 ? 1 : std::min(maxSkip + 1, columns)); ++step) {
        for (int64_t first = 0; first <= columns - 1 - step * (n - 1); ++first) {
          gram.clear();
          for (int64_t k = 0; k < n; ++k) gram.push_back(row[static_cast<size_t>(first + k * step)]);
          if (auto at = known.find(gram); at != known.end()) ++counts[at->second];
        }
      }
    }
    for (size_t i = 0; i < counts.size(); ++i) {
      double weight = weights.empty() || mode == "TF" ? 1 : weights[i];
      auto count = static_cast<double>(mode == "IDF" ? std::min<int64_t>(counts[i], 1) : counts[i]);
      out[indexes[i]] += static_cast<float>(count * weight);
    }
  }
};

template <typename T>
Status vectorise(const Vectoriser& v, const HostCall& call, const std::vector<T>& items, const std::vector<T>& pool,
                 Tensor& y) {
  std::map<std::vector<T>, size_t> known;
  LOCUTION_RETURN_IF_ERROR(v.readPool(pool, intsAttr(call.attrs, "ngram_counts"), known));
  int64_t rows = y.rank() == 1 ? 1 : y.dims()[0];
  size_t columns = rows == 0 ? 0 : items.size() / static_cast<size_t>(rows);
  for (int64_t r = 0; r < rows; ++r) {
    auto begin = items.begin() + r * static_cast<int64_t>(columns);
    v.countRow(std::vector<T>(begin, begin + static_cast<int64_t>(columns)), known, y.data<float>() + r * v.width);
  }
  return Status::ok();
}

}  // namespace

Status tfIdfVectorizer(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  if (x.rank() != 1 && x.rank() != 2)
    return Status::error("the input must have rank 1 or 2, but is " + dimsText(x.dims()));
  Vectoriser v;
  LOCUTION_RETURN_IF_ERROR(v.read(call.attrs));
  std::vector<int64_t> dims =
      x.rank() == 1 ? std::vector<int64_t>{v.width} : std::vector<int64_t>{x.dims()[0], v.width};
  LOCUTION_RETURN_IF_ERROR(checkSize(DType::F32, dims));
  Tensor y(DType::F32, std::move(dims));
  bool words = hasAttr(call.attrs, "pool_strings");
  if (words != (x.dtype() == DType::String) || (!words && !isInteger(x.dtype())))
    return Status::error("the input is " + std::string(dtypeName(x.dtype())) + ", but the pool holds " +
                         (words ? "strings" : "integers"));
  if (words)
    LOCUTION_RETURN_IF_ERROR(vectorise(v, call, x.strings(), textsAttr(call.attrs, "pool_strings"), y));
  else
    LOCUTION_RETURN_IF_ERROR(vectorise(v, call, x.toInts(), intsAttr(call.attrs, "pool_int64s"), y));
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace locution::hostops
