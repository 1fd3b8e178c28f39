// XGBoost behind CostModel. The library is loaded on first use: it takes longer to load than a small model to compile.
#include <dlfcn.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "generator/search/cost_model.h"
#include "support/check.h"

namespace locution::generator {

namespace {

#define XGBOOST_FUNCTIONS(F) \
  F(XGBGetLastError)         \
  F(XGDMatrixCreateFromMat)  \
  F(XGDMatrixFree)           \
  F(XGDMatrixSetFloatInfo)   \
  F(XGBoosterCreate) F(XGBoosterFree) F(XGBoosterSetParam) F(XGBoosterUpdateOneIter) F(XGBoosterPredictFromDMatrix)

struct Library {
#define POINTER(name) decltype(&::name) name = nullptr;
  XGBOOST_FUNCTIONS(POINTER)
#undef POINTER
};

Result<const Library*> library() {
  static const Result<Library> kLoaded = []() -> Result<Library> {
    void* handle = dlopen("libxgboost.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return Status::error(std::string("the evolutionary search needs XGBoost (Debian's package libxgboost0): ") +
                           dlerror());
    Library found;
    const char* missing = nullptr;
#define LOAD(name)                                                           \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name)); \
  if (!found.name) missing = #name;
    XGBOOST_FUNCTIONS(LOAD)
#undef LOAD
    if (missing) return Status::error(std::string("XGBoost is too old: it has no ") + missing);
    return found;
  }();
  if (!kLoaded.isOk()) return kLoaded.status();
  return &*kLoaded;
}

constexpr int kRounds = 60;
constexpr std::pair<const char*, const char*> kParameters[] = {
    {"objective", "reg:squarederror"},
    {"tree_method", "hist"},
    {"max_depth", "6"},
    {"eta", "0.15"},
    {"min_child_weight", "1"},
    {"lambda", "1"},
    {"nthread", "1"},
    {"seed", "0"},
    {"verbosity", "0"},
    {"base_score", "0"},
};
/// Fewer tell too little.
constexpr size_t kLeastRows = 12;
/// What is slower than this is only known to be slow.
constexpr double kMost = 2.1;

class BoostedTrees : public CostModel {
 public:
  explicit BoostedTrees(const Library& library) : x_(library) {}
  ~BoostedTrees() override {
    if (booster_) x_.XGBoosterFree(booster_);
  }
  BoostedTrees(const BoostedTrees&) = delete;
  BoostedTrees& operator=(const BoostedTrees&) = delete;

  void add(const std::vector<float>& features, double logRatio) override {
    LOCUTION_CHECK(columns_ == 0 || columns_ == features.size()) << features.size();
    columns_ = features.size();
    rows_.insert(rows_.end(), features.begin(), features.end());
    targets_.push_back(static_cast<float>(std::clamp(logRatio, -kMost, kMost)));
    // The fast ones are what the search is about.
    weights_.push_back(static_cast<float>(0.1 + std::exp(-std::max(0.0, logRatio))));
  }

  std::optional<std::vector<double>> predict(const std::vector<std::vector<float>>& rows) override {
    if (targets_.size() < kLeastRows) return std::nullopt;
    // Training takes as long as measuring a few plans: not for every few new rows once there are many.
    constexpr size_t kShare = 16;
    if (targets_.size() - trainedOn_ >= std::max<size_t>(1, targets_.size() / kShare)) train();
    std::vector<double> out;
    if (rows.empty()) return out;
    std::vector<float> flat;
    for (const auto& r : rows) {
      LOCUTION_CHECK(r.size() == columns_) << r.size();
      flat.insert(flat.end(), r.begin(), r.end());
    }
    DMatrixHandle matrix = matrixOf(flat, rows.size());
    const bst_ulong* shape = nullptr;
    bst_ulong dims = 0;
    const float* values = nullptr;
    check(x_.XGBoosterPredictFromDMatrix(
        booster_, matrix, R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})",
        &shape, &dims, &values));
    out.assign(values, values + rows.size());
    x_.XGDMatrixFree(matrix);
    return out;
  }

 private:
  void check(int code) const { LOCUTION_CHECK(code == 0) << "XGBoost: " << x_.XGBGetLastError(); }

  DMatrixHandle matrixOf(const std::vector<float>& values, size_t rows) const {
    DMatrixHandle matrix = nullptr;
    check(x_.XGDMatrixCreateFromMat(values.data(), rows, columns_, std::numeric_limits<float>::quiet_NaN(), &matrix));
    return matrix;
  }

  void train() {
    if (booster_) x_.XGBoosterFree(booster_);
    booster_ = nullptr;
    DMatrixHandle matrix = matrixOf(rows_, targets_.size());
    check(x_.XGDMatrixSetFloatInfo(matrix, "label", targets_.data(), targets_.size()));
    check(x_.XGDMatrixSetFloatInfo(matrix, "weight", weights_.data(), weights_.size()));
    check(x_.XGBoosterCreate(&matrix, 1, &booster_));
    for (auto [name, value] : kParameters) check(x_.XGBoosterSetParam(booster_, name, value));
    for (int i = 0; i < kRounds; ++i) check(x_.XGBoosterUpdateOneIter(booster_, i, matrix));
    x_.XGDMatrixFree(matrix);
    trainedOn_ = targets_.size();
  }

  const Library& x_;
  size_t columns_ = 0, trainedOn_ = 0;
  std::vector<float> rows_, targets_, weights_;
  BoosterHandle booster_ = nullptr;
};

}  // namespace

Result<std::shared_ptr<CostModel>> makeBoostedTrees() {
  LOCUTION_ASSIGN_OR_RETURN(const Library* loaded, library());
  return std::shared_ptr<CostModel>(std::make_shared<BoostedTrees>(*loaded));
}

}  // namespace locution::generator
