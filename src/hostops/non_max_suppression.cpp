// NonMaxSuppression: boxes by falling score, without those that overlap one already chosen.
#include <algorithm>
#include <cmath>

#include "hostops/helpers.h"
#include "hostops/ops.h"

namespace locution::hostops {
namespace {

struct Box {
  float y1, x1, y2, x2;  // y1 <= y2, x1 <= x2
  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box readBox(const float* data, bool centred) {
  if (centred) {
    float x = data[0], y = data[1], halfWidth = data[2] / 2, halfHeight = data[3] / 2;
    return {y - halfHeight, x - halfWidth, y + halfHeight, x + halfWidth};
  }
  return {std::min(data[0], data[2]), std::min(data[1], data[3]), std::max(data[0], data[2]),
          std::max(data[1], data[3])};
}

/// Intersection over union is strictly above the threshold; boxes without area overlap nothing.
bool overlaps(const Box& a, const Box& b, float threshold) {
  float height = std::max(0.0F, std::min(a.y2, b.y2) - std::max(a.y1, b.y1));
  float width = std::max(0.0F, std::min(a.x2, b.x2) - std::max(a.x1, b.x1));
  float intersection = height * width, both = a.area() + b.area() - intersection;
  if (intersection <= 0 || a.area() <= 0 || b.area() <= 0 || both <= 0) return false;
  return intersection / both > threshold;
}

}  // namespace

/// [n, 3]: batch, class, box. Equal scores: the lower box index first.
Status nonMaxSuppression(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor &boxes = call.tensor(0), &scores = call.tensor(1);
  if (boxes.dtype() != DType::F32 || scores.dtype() != DType::F32)
    return Status::error("boxes and scores must be float32");
  if (boxes.rank() != 3 || boxes.dims()[2] != 4)
    return Status::error("boxes must be [batches, boxes, 4], but are " + dimsText(boxes.dims()));
  if (scores.rank() != 3 || scores.dims()[0] != boxes.dims()[0] || scores.dims()[2] != boxes.dims()[1])
    return Status::error("scores must be [batches, classes, boxes] for boxes of " + dimsText(boxes.dims()) +
                         ", but are " + dimsText(scores.dims()));
  LOCUTION_ASSIGN_OR_RETURN(int64_t limit, scalarInt(call, 2, 0, "max_output_boxes_per_class"));
  LOCUTION_ASSIGN_OR_RETURN(double iou, scalarFloat(call, 3, 0, "iou_threshold"));
  LOCUTION_ASSIGN_OR_RETURN(double least, scalarFloat(call, 4, 0, "score_threshold"));
  if (!(iou >= 0 && iou <= 1)) return Status::error("iou_threshold is " + std::to_string(iou) + ", outside [0, 1]");
  bool hasLeast = call.has(4), centred = intAttr(call.attrs, "center_point_box", 0) != 0;
  int64_t batches = boxes.dims()[0], count = boxes.dims()[1], classes = scores.dims()[1];

  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<Box> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(readBox(boxes.data<float>() + (batch * count + i) * 4, centred));
    for (int64_t cls = 0; cls < classes; ++cls) {
      const float* score = scores.data<float>() + (batch * classes + cls) * count;
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i)
        if (!std::isnan(score[i]) && (!hasLeast || score[i] > static_cast<float>(least))) order.push_back(i);
      std::sort(order.begin(), order.end(),
                [&](int64_t i, int64_t j) { return score[i] != score[j] ? score[i] > score[j] : i < j; });
      std::vector<int64_t> chosen;
      for (int64_t i : order) {
        if (static_cast<int64_t>(chosen.size()) >= limit) break;
        bool suppressed = std::any_of(chosen.begin(), chosen.end(), [&](int64_t j) {
          return overlaps(all[static_cast<size_t>(i)], all[static_cast<size_t>(j)], static_cast<float>(iou));
        });
        if (!suppressed) chosen.push_back(i);
      }
      for (int64_t i : chosen) selected.insert(selected.end(), {batch, cls, i});
    }
  }
  auto rows = static_cast<int64_t>(selected.size()) / 3;
  outputs[0] = Tensor::of<int64_t>(DType::I64, {rows, 3}, selected);
  return Status::ok();
}

}  // namespace locution::hostops
