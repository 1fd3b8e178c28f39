#include "generator/tlm/reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "language/choice_tokens.h"
#include "support/check.h"

namespace locution::generator::tlm {

using language::Token;

namespace {

constexpr float kNever = -1e9F;
/// Shapes that programs are made for. How many tokens of a prompt at a time: of what follows the target at once, and of what follows that.
constexpr int64_t kFirstRows[] = {8, 16, 24, 32}, kLaterRows[] = {8, 32}, kMostRows = 32;
/// Sentences at a time.
constexpr int64_t kSentenceRows[] = {1, 4, 12, 24, 32}, kBlock = 32;
/// Places of a target, of most prompts and of most sentences; and of long sentences.
constexpr int64_t kTargetPlaces = 16, kPromptPlaces = 64, kOwnPlaces = 16, kMostOwn = 96;

int64_t mostPlaces(const ModelConfig& c) { return std::max(kPromptPlaces, c.context / 16 * 16); }
/// Few where the prompt is short; else sentences are likely to be long too.
int64_t ownPlaces(int64_t promptPlaces) { return promptPlaces == kPromptPlaces ? kOwnPlaces : kMostOwn; }

/// The least of ascending numbers that is no less; else the last.
template <size_t kCount>
int64_t leastAtLeast(const int64_t (&values)[kCount], int64_t wanted) {
  const int64_t* found = std::lower_bound(values, values + kCount, wanted);
  return found == values + kCount ? values[kCount - 1] : *found;
}

/// Keys ([sentence, head, width, place]) or values ([sentence, head, place, width]) of a layer.
struct Cache {
  Cache(const ModelConfig& c, int64_t sentences, int64_t count, bool isOfKeys)
      : places(count),
        isKeys(isOfKeys),
        storage(allocateStorage(static_cast<size_t>(sentences * c.width * count) * sizeof(float))) {}
  float* slot(const ModelConfig& c, size_t sentence) const {
    return reinterpret_cast<float*>(storage->data()) + static_cast<int64_t>(sentence) * c.width * places;
  }
  /// Of the first sentences; 0: of the only one, without that dim.
  Tensor view(const ModelConfig& c, int64_t sentences) const {
    std::vector<int64_t> dims{c.heads, isKeys ? c.headWidth() : places, isKeys ? places : c.headWidth()};
    if (sentences > 0) dims.insert(dims.begin(), sentences);
    return {DType::F32, dims, storage};
  }
  /// What the projection of a token says goes to its place.
  void put(const ModelConfig& c, size_t sentence, int64_t place, const float* row) const {
    float* to = slot(c, sentence);
    if (isKeys) {
      for (int64_t n = 0; n < c.width; ++n) to[n * places + place] = row[n];
    } else {
      for (int64_t h = 0; h < c.heads; ++h)
        std::copy_n(row + h * c.headWidth(), c.headWidth(), to + (h * places + place) * c.headWidth());
    }
  }

  int64_t places;
  bool isKeys;
  std::shared_ptr<Storage> storage;  // shared with the tensors that view it
};

/// The first `count` places of a sentence, perhaps to a cache of more.
void copySlot(const ModelConfig& c, const Cache& from, size_t fromSlot, const Cache& to, size_t toSlot, int64_t count) {
  const int64_t rows = from.isKeys ? c.width : c.heads, step = from.isKeys ? 1 : c.headWidth();
  const float* a = from.slot(c, fromSlot);
  float* b = to.slot(c, toSlot);
  // A few bytes of each of many rows take longer than all of few.
  constexpr int64_t kFew = 32;
  if (from.places == to.places && from.places <= kFew) {
    std::copy_n(a, c.width * from.places, b);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) std::copy_n(a + i * from.places * step, count * step, b + i * to.places * step);
}

struct LayerCache {
  LayerCache(const ModelConfig& c, int64_t sentences, int64_t places)
      : keys(c, sentences, places, true), values(c, sentences, places, false) {}
  /// `qkv`: the projections of a token.
  void put(const ModelConfig& c, size_t sentence, int64_t place, const float* qkv) const {
    keys.put(c, sentence, place, qkv + c.width);
    values.put(c, sentence, place, qkv + 2 * c.width);
  }
  void copy(const ModelConfig& c, const LayerCache& from, size_t fromSlot, size_t toSlot, int64_t count) const {
    copySlot(c, from.keys, fromSlot, keys, toSlot, count);
    copySlot(c, from.values, fromSlot, values, toSlot, count);
  }
  Cache keys, values;
};

/// 0 for the first places, which hold tokens; others are not seen.
void show(Tensor* mask, int64_t count) {
  for (int64_t i = 0; i < mask->elements(); ++i) mask->data<float>()[i] = i < count ? 0 : kNever;
}

/// [inputs][columns] to [columns / kPanel][inputs][kPanel]; columns past the last are zero.
Tensor panelsOf(const std::vector<float>& matrix, int64_t inputs, int64_t columns, int64_t padded) {
  Tensor out(DType::F32, {padded / kPanel, inputs, kPanel});
  for (int64_t k = 0; k < inputs; ++k)
    for (int64_t n = 0; n < columns; ++n)
      out.data<float>()[(n / kPanel * inputs + k) * kPanel + n % kPanel] = matrix[static_cast<size_t>(k * columns + n)];
  return out;
}

/// A matrix with the scale and shift of the norm before it: (x * scale + shift) W + b = x (scale * W) + (shift W + b).
struct Folded {
  std::vector<float> weight;
  std::vector<double> bias;
};
Folded fold(const Tensor& weight, const Tensor* bias, const Tensor* scale, const Tensor* shift) {
  const int64_t inputs = weight.dims()[0], columns = weight.dims()[1];
  Folded out{std::vector<float>(static_cast<size_t>(inputs * columns)),
             std::vector<double>(static_cast<size_t>(columns))};
  for (int64_t n = 0; n < columns && bias; ++n) out.bias[static_cast<size_t>(n)] = bias->data<float>()[n];
  for (int64_t k = 0; k < inputs; ++k)
    for (int64_t n = 0; n < columns; ++n) {
      const float w = weight.data<float>()[k * columns + n];
      out.weight[static_cast<size_t>(k * columns + n)] = scale ? w * scale->data<float>()[k] : w;
      if (shift)
        out.bias[static_cast<size_t>(n)] += static_cast<double>(w) * static_cast<double>(shift->data<float>()[k]);
    }
  return out;
}

}  // namespace

Network::Network(const Weights& weights) : config_(weights.config), first_(language::firstChoiceToken()) {
  const Parameters& p = weights.parameters;
  words_ = p.at("wte.weight");
  places_ = p.at("wpe.weight");
  auto add = [&](const Folded& f, int64_t inputs, int64_t padded) {
    const auto columns = static_cast<int64_t>(f.bias.size());
    matrices_.push_back(panelsOf(f.weight, inputs, columns, padded));
    Tensor bias(DType::F32, {padded / kPanel, kPanel});
    for (int64_t n = 0; n < columns; ++n) bias.data<float>()[n] = static_cast<float>(f.bias[static_cast<size_t>(n)]);
    matrices_.push_back(std::move(bias));
  };
  for (int64_t i = 0; i < config_.layers; ++i) {
    const std::string layer = "h." + std::to_string(i) + ".";
    auto dense = [&](const std::string& name, const std::string& norm) {
      const Tensor& w = p.at(layer + name + ".weight");
      const bool isNormed = !norm.empty();
      return fold(w, &p.at(layer + name + ".bias"), isNormed ? &p.at(layer + norm + ".weight") : nullptr,
                  isNormed ? &p.at(layer + norm + ".bias") : nullptr);
    };
    Folded qkv = dense("attn.c_attn", "ln_1");
    // Scores are divided by the root of a head's width: where queries are made.
    const double scale = 1 / std::sqrt(static_cast<double>(config_.headWidth()));
    for (int64_t n = 0; n < config_.width; ++n) {
      qkv.bias[static_cast<size_t>(n)] *= scale;
      for (int64_t k = 0; k < config_.width; ++k)
        qkv.weight[static_cast<size_t>(k * 3 * config_.width + n)] *= static_cast<float>(scale);
    }
    add(qkv, config_.width, 3 * config_.width);
    add(dense("attn.c_proj", ""), config_.width, config_.width);
    add(dense("mlp.c_fc", "ln_2"), config_.width, config_.hidden());
    add(dense("mlp.c_proj", ""), config_.hidden(), config_.width);
  }
  const int64_t columns = valueColumn() + 1;
  Tensor head(DType::F32, {config_.width, columns}), bias(DType::F32, {columns});
  for (int64_t k = 0; k < config_.width; ++k) {
    for (int64_t j = 0; j < columns - 1; ++j)
      head.data<float>()[k * columns + j] = words_.data<float>()[(first_ + j) * config_.width + k];
    head.data<float>()[k * columns + columns - 1] = p.at("value.weight").data<float>()[k];
  }
  bias.data<float>()[columns - 1] = p.at("value.bias").data<float>()[0];
  add(fold(head, &bias, &p.at("ln_f.weight"), &p.at("ln_f.bias")), config_.width, headColumns(config_, first_));
}

void Network::embed(Token word, int64_t place, float* out) const {
  const float *w = words_.data<float>() + word * config_.width, *p = places_.data<float>() + place * config_.width;
  for (int64_t i = 0; i < config_.width; ++i) out[i] = w[i] + p[i];
}

std::vector<InferenceShape> inferenceShapes(const ModelConfig& config) {
  std::vector<InferenceShape> out;
  for (int64_t rows : kFirstRows) out.push_back({rows, kTargetPlaces, 0});
  for (int64_t places : {kPromptPlaces, mostPlaces(config)}) {
    for (int64_t rows : kLaterRows) out.push_back({rows, places, 0});
    for (int64_t own : {ownPlaces(places), kMostOwn})
      for (int64_t rows : kSentenceRows) out.push_back({rows, places, own});
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// The caches of prompts of up to so many tokens.
struct Reader::Prompt {
  Prompt(const ModelConfig& c, int64_t places) : mask(DType::F32, {places}) {
    for (int64_t i = 0; i < c.layers; ++i) layers.emplace_back(c, 1, places);
  }
  std::vector<Token> target;  ///< what the first places hold
  Tensor mask;
  std::vector<LayerCache> layers;
};

/// The caches of a block of sentences.
struct Reader::Own {
  Own(const ModelConfig& c, int64_t places) : mask(DType::F32, {places}) {
    for (int64_t i = 0; i < c.layers; ++i) layers.emplace_back(c, kBlock, places);
  }
  Tensor mask;
  std::vector<LayerCache> layers;
};

/// A program with its inputs bound; those that change from run to run are written in place.
struct Reader::Bound {
  std::unique_ptr<runtime::Context> context;
  Tensor x, pick;
};

Reader::Reader(std::shared_ptr<const Network> network, std::shared_ptr<const ProgramSource> programs)
    : network_(std::move(network)), programs_(std::move(programs)) {}
Reader::~Reader() = default;

int64_t Reader::room(int64_t prompt) const {
  const ModelConfig& c = network_->config();
  return std::min(kMostOwn, std::min(mostPlaces(c), c.context) - prompt);
}

Result<Reader::Bound*> Reader::bind(const InferenceShape& shape, const Prompt& prompt, size_t block) {
  auto& slot = bound_[{shape, block}];
  if (slot) return slot.get();
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<const runtime::Program> program, (*programs_)(shape));
  const ModelConfig& c = network_->config();
  auto out = std::make_unique<Bound>();
  out->context = std::make_unique<runtime::Context>(program, nullptr);
  out->x = Tensor(DType::F32, {shape.rows, c.width});
  std::vector<Tensor> inputs{out->x, prompt.mask};
  Own* own = nullptr;
  if (shape.isPrompt()) {
    out->pick = Tensor(DType::F32, {shape.rows});
    inputs.push_back(out->pick);
  } else {
    own = own_.at(shape.own).at(block).get();
    inputs.push_back(own->mask);
  }
  for (size_t i = 0; i < static_cast<size_t>(c.layers); ++i) {
    inputs.push_back(prompt.layers[i].keys.view(c, 0));
    inputs.push_back(prompt.layers[i].values.view(c, 0));
    if (!own) continue;
    inputs.push_back(own->layers[i].keys.view(c, shape.rows));
    inputs.push_back(own->layers[i].values.view(c, shape.rows));
  }
  inputs.insert(inputs.end(), network_->matrices().begin(), network_->matrices().end());
  for (size_t i = 0; i < inputs.size(); ++i) LOCUTION_RETURN_IF_ERROR(out->context->setInput(i, inputs[i]));
  slot = std::move(out);
  return slot.get();
}

Status Reader::readPrompt(const std::vector<Token>& target, const std::vector<Token>& rest) {
  const ModelConfig& c = network_->config();
  const auto length = static_cast<int64_t>(target.size() + rest.size()), begin = static_cast<int64_t>(target.size());
  LOCUTION_CHECK(room(length) > 0 && !rest.empty() && !target.empty()) << length;
  auto promptOf = [&](int64_t places) {
    auto& prompt = prompts_[places];
    if (!prompt) prompt = std::make_unique<Prompt>(c, places);
    return prompt.get();
  };
  prompt_ = promptOf(length <= kPromptPlaces ? kPromptPlaces : mostPlaces(c));
  // How a prompt is cut into chunks depends on nothing that was read before it: the sums of attention do.
  Prompt* seen = begin <= kTargetPlaces ? promptOf(kTargetPlaces) : prompt_;
  if (seen->target != target) {
    seen->target.clear();
    LOCUTION_RETURN_IF_ERROR(readAll(target, 0, seen, seen));
    seen->target = target;
  }
  if (prompt_->target != target) {
    for (size_t i = 0; i < prompt_->layers.size(); ++i) prompt_->layers[i].copy(c, seen->layers[i], 0, 0, begin);
    prompt_->target = target;
  }
  LOCUTION_RETURN_IF_ERROR(readAll(rest, begin, seen, prompt_));
  promptLength_ = length;
  depth_ = 0;
  places_ = ownPlaces(prompt_->mask.elements());
  slots_.clear();
  show(&prompt_->mask, length);
  return Status::ok();
}

/// The first chunk sees what `seen` holds, the others what `to` does.
Status Reader::readAll(const std::vector<Token>& words, int64_t place, Prompt* seen, Prompt* to) {
  for (size_t begin = 0; begin < words.size(); begin += kMostRows, seen = to)
    LOCUTION_RETURN_IF_ERROR(
        readChunk({words.begin() + static_cast<std::ptrdiff_t>(begin),
                   words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), begin + kMostRows))},
                  place + static_cast<int64_t>(begin), seen, to));
  return Status::ok();
}

Status Reader::readChunk(const std::vector<Token>& words, int64_t place, Prompt* seen, Prompt* to) {
  const ModelConfig& c = network_->config();
  const auto count = static_cast<int64_t>(words.size()), places = seen->mask.elements();
  const int64_t rows = places == kTargetPlaces ? leastAtLeast(kFirstRows, count) : leastAtLeast(kLaterRows, count);
  LOCUTION_ASSIGN_OR_RETURN(Bound * bound, bind({rows, places, 0}, *seen, 0));
  show(&seen->mask, place);
  std::fill_n(bound->x.data<float>(), bound->x.elements(), 0.0F);
  std::fill_n(bound->pick.data<float>(), bound->pick.elements(), 0.0F);
  for (int64_t i = 0; i < count; ++i)
    network_->embed(words[static_cast<size_t>(i)], place + i, bound->x.data<float>() + i * c.width);
  bound->pick.data<float>()[count - 1] = 1;
  LOCUTION_RETURN_IF_ERROR(bound->context->run());
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    const auto* qkv = bound->context->output(static_cast<size_t>(layer)).data<float>();
    for (int64_t i = 0; i < count; ++i)
      to->layers[static_cast<size_t>(layer)].put(c, 0, place + i, qkv + i * 3 * c.width);
  }
  scores_ = {bound->context->output(static_cast<size_t>(c.layers)).data<float>()};
  return Status::ok();
}

/// Blocks for so many rows, of places for one more token; rows keep their slots.
Status Reader::grow(int64_t rows) {
  const ModelConfig& c = network_->config();
  const int64_t before = places_;
  if (depth_ >= places_) places_ = kMostOwn;
  LOCUTION_CHECK(depth_ < places_) << depth_;
  const auto blocks = static_cast<size_t>((rows + kBlock - 1) / kBlock);
  auto& own = own_[places_];
  while (own.size() < blocks) own.push_back(std::make_unique<Own>(c, places_));
  if (before == places_) return Status::ok();
  const size_t used = slots_.empty() ? 0 : *std::max_element(slots_.begin(), slots_.end()) / kBlock + 1;
  while (own.size() < used) own.push_back(std::make_unique<Own>(c, places_));
  for (size_t block = 0; block < used; ++block)
    for (size_t slot = 0; slot < kBlock; ++slot)
      for (size_t i = 0; i < static_cast<size_t>(c.layers); ++i)
        own[block]->layers[i].copy(c, own_.at(before)[block]->layers[i], slot, slot, depth_);
  return Status::ok();
}

Status Reader::step(const std::vector<Row>& rows) {
  const ModelConfig& c = network_->config();
  LOCUTION_CHECK(!rows.empty() && depth_ < room(promptLength_));
  LOCUTION_RETURN_IF_ERROR(grow(static_cast<int64_t>(rows.size())));
  auto& own = own_.at(places_);
  // Rows lie in the first slots: the first child of a sentence takes over its slot, others copy it to slots that have no child.
  std::vector<size_t> slots(rows.size(), SIZE_MAX);
  std::vector<bool> isTaken(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t slot = depth_ == 0 ? i : slots_.at(rows[i].parent);
    if (slot >= rows.size() || isTaken[slot]) continue;
    slots[i] = slot;
    isTaken[slot] = true;
  }
  for (size_t i = 0, free = 0; i < rows.size(); ++i) {
    if (slots[i] != SIZE_MAX) continue;
    while (isTaken[free]) ++free;
    isTaken[free] = true;
    slots[i] = free;
    const size_t from = slots_.at(rows[i].parent);
    for (size_t l = 0; l < static_cast<size_t>(c.layers); ++l) {
      const LayerCache& source = own[from / kBlock]->layers[l];
      own[free / kBlock]->layers[l].copy(c, source, from % kBlock, free % kBlock, depth_);
    }
  }
  std::vector<size_t> rowOf(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) rowOf[slots[i]] = i;
  scores_.assign(rows.size(), nullptr);
  for (size_t block = 0; block * kBlock < rows.size(); ++block) {
    const size_t begin = block * kBlock, count = std::min<size_t>(kBlock, rows.size() - begin);
    LOCUTION_ASSIGN_OR_RETURN(Bound * bound, bind({leastAtLeast(kSentenceRows, static_cast<int64_t>(count)),
                                                   prompt_->mask.elements(), places_},
                                                  *prompt_, block));
    Own& o = *own[block];
    show(&o.mask, depth_);
    for (size_t i = 0; i < count; ++i)
      network_->embed(rows[rowOf[begin + i]].word, promptLength_ + depth_,
                      bound->x.data<float>() + static_cast<int64_t>(i) * c.width);
    LOCUTION_RETURN_IF_ERROR(bound->context->run());
    for (size_t l = 0; l < static_cast<size_t>(c.layers); ++l) {
      const auto* qkv = bound->context->output(l).data<float>();
      for (size_t i = 0; i < count; ++i) o.layers[l].put(c, i, depth_, qkv + static_cast<int64_t>(i) * 3 * c.width);
    }
    const Tensor& scores = bound->context->output(static_cast<size_t>(c.layers));
    for (size_t i = 0; i < count; ++i)
      scores_[rowOf[begin + i]] = scores.data<float>() + static_cast<int64_t>(i) * scores.dims()[1];
  }
  slots_ = std::move(slots);
  ++depth_;
  return Status::ok();
}

const float* Reader::scores(size_t row) const { return scores_.at(row); }

}  // namespace locution::generator::tlm
