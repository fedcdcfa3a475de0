// SPDX-License-Identifier: Apache-2.0
// A model whose layers only record their arguments, for tests of stages and memory.
//
// Threads: one. Ownership: the notes belong to the test. Blocking: never.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "triax/cheap_recompute.hpp"
#include "triax/recompute_steps.hpp"

namespace triax::test {

/// "forward mid: in 1, out 1, stash 1-1": 1 is a view with data, - an empty view.
struct Note {
  std::string text;
  std::vector<void*> in, out, dout, din, stash, grads;
  std::vector<Shape> shapes{}; // of in, out and stash
};

struct SampleSpec {
  std::string name;
  std::vector<ParamSpec> params;
  std::vector<StashSpec> stash;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<int> recomputed{};      // CheapRecompute::recomputed_stash(); empty: without the interface
  std::vector<RecomputeStep> steps{}; // RecomputeSteps::steps(); empty: without the interface
};

/// Offers CheapRecompute if the spec lists tensors for it, and RecomputeSteps if it lists steps.
class SampleLayer : public Layer, public CheapRecompute, public RecomputeSteps {
 public:
  SampleLayer(SampleSpec spec, std::vector<Note>& notes) : spec_(std::move(spec)), notes_(notes) {}

  std::string_view name() const override { return spec_.name; }
  std::span<const ParamSpec> params() const override { return spec_.params; }
  std::span<const StashSpec> stash() const override { return spec_.stash; }
  std::span<const TensorSpec> inputs() const override { return spec_.inputs; }
  std::span<const TensorSpec> outputs() const override { return spec_.outputs; }
  Cost cost() const override { return {}; }

  void forward(const LayerCall&, Views, Views in, Views out, Views stash) override {
    note("forward", in, out, {}, {}, stash, {});
  }
  void backward_input(const LayerCall&, Views, Views in, Views dout, Views din, Views stash, Views grads) override {
    note("input", in, {}, dout, din, stash, grads);
  }
  void backward_weight(const LayerCall&, Views in, Views stash, Views grads) override {
    note("weight", in, {}, {}, {}, stash, grads);
  }

  void* extension(std::string_view id) noexcept override {
    if (id == RecomputeSteps::kExtension && !spec_.steps.empty()) return static_cast<RecomputeSteps*>(this);
    return id == CheapRecompute::kExtension && !spec_.recomputed.empty() ? static_cast<CheapRecompute*>(this) : nullptr;
  }
  std::span<const int> recomputed_stash() const override { return spec_.recomputed; }
  void recompute(const LayerCall&, Views, Views in, Views stash) override {
    note("recompute", in, {}, {}, {}, stash, {});
  }
  std::span<const RecomputeStep> steps() const override { return spec_.steps; }
  void recompute_step(const LayerCall&, int step, Views, Views in, Views stash) override {
    note(spec_.steps[static_cast<std::size_t>(step)].name.c_str(), in, {}, {}, {}, stash, {});
  }

 private:
  static std::vector<void*> data(Views views) {
    std::vector<void*> out;
    for (const TensorView& view : views) out.push_back(view.data());
    return out;
  }
  static void describe(std::string& text, const char* what, Views views) {
    if (views.empty()) return;
    text += text.ends_with(':') ? " " : ", ";
    text += std::string(what) + " ";
    for (const TensorView& view : views) text += view.empty() ? '-' : '1';
  }
  void note(const char* what, Views in, Views out, Views dout, Views din, Views stash, Views grads) {
    Note made{std::string(what) + " " + spec_.name + ":",
              data(in),
              data(out),
              data(dout),
              data(din),
              data(stash),
              data(grads),
              {}};
    describe(made.text, "in", in);
    describe(made.text, "out", out);
    describe(made.text, "dout", dout);
    describe(made.text, "din", din);
    describe(made.text, "stash", stash);
    for (const Views views : {in, out, stash})
      for (const TensorView& view : views) made.shapes.push_back(view.shape());
    notes_.push_back(std::move(made));
  }

  SampleSpec spec_;
  std::vector<Note>& notes_;
};

class SampleModel final : public Model {
 public:
  std::vector<SampleSpec> specs;
  std::vector<Tie> tied;
  std::optional<ModelInfo> answer{}; // of info(); empty: all layers but the first and the last are blocks
  mutable std::vector<Note> notes;

  ModelInfo info() const override {
    return answer.value_or(ModelInfo{.blocks = count() - 2, .first_block = 1, .sequence = 3});
  }
  Refusals supports(const ModelRequest&, const Layout&) const override { return {}; }
  int count() const override { return static_cast<int>(specs.size()); }
  std::unique_ptr<Layer> layer(int index, const LayerContext&) const override {
    return std::make_unique<SampleLayer>(specs.at(static_cast<std::size_t>(index)), notes);
  }
  std::span<const Tie> ties() const override { return tied; }
  double flops_per_sample(std::int64_t) const override { return 0; }
};

/// The texts of all calls, in order.
inline std::vector<std::string> texts(const std::vector<Note>& notes) {
  std::vector<std::string> out;
  for (const Note& note : notes) out.push_back(note.text);
  return out;
}

/// The call number `which` whose text begins so.
inline const Note& note(const SampleModel& model, const std::string& begin, int which = 0) {
  for (const Note& candidate : model.notes)
    if (candidate.text.starts_with(begin) && which-- == 0) return candidate;
  throw std::runtime_error("no " + begin);
}

inline ParamSpec sample_param(const std::string& name, const Shape& shape, std::uint32_t site = 0) {
  ParamSpec spec;
  spec.name = name;
  spec.global = spec.local = shape;
  spec.init = {Init::Kind::normal, 1};
  spec.site = site;
  return spec;
}

/// From tokens through a first, two middle and a last layer; each tensor has a different lifetime.
inline SampleModel sample_model() {
  const Shape rows{3, 2}, stream{3, 2, 4};
  const StashSpec stash[] = {{"f", stream, DType::f32, Life::forward_only},
                             {"i", stream, DType::f32, Life::forward_to_input},
                             {"w", stream, DType::f32, Life::forward_to_weight},
                             {"iw", stream, DType::f32, Life::input_to_weight}};
  const std::vector<StashSpec> all(std::begin(stash), std::end(stash));
  SampleModel model;
  model.specs = {
      {"first", {sample_param("table", {5, 4}, 1)}, all, {{"tokens", rows, DType::i32}}, {{"x", stream}}},
      {"brief",
       {sample_param("a", {4}, 17), sample_param("b", {4, 4}, 18)},
       all,
       {{"x", stream, DType::f32, Life::forward_only}},
       {{"x", stream}}},
      {"mid", {sample_param("a", {4}, 33)}, all, {{"x", stream, DType::f32, Life::forward_to_input}}, {{"x", stream}}},
      {"last",
       {sample_param("table", {5, 4}, 49)},
       all,
       {{"targets", rows, DType::i32}, {"x", stream, DType::f32, Life::forward_to_weight}},
       {{"loss", {2}, DType::f64}}}};
  return model;
}

} // namespace triax::test
