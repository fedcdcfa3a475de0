// SPDX-License-Identifier: Apache-2.0
// Orders of passes, repeated forwards, repeated calls: none may change a bit.
#include <array>

#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

/// A pass of one microbatch over all layers.
struct Step {
  char pass; // F, I, W
  int microbatch;
};

/// The first is the order of train().
constexpr std::array<std::array<Step, 9>, 4> kOrders = {{
    {{{'F', 0}, {'I', 0}, {'W', 0}, {'F', 1}, {'I', 1}, {'W', 1}, {'F', 2}, {'I', 2}, {'W', 2}}},
    {{{'F', 0}, {'F', 1}, {'F', 2}, {'I', 0}, {'I', 1}, {'I', 2}, {'W', 0}, {'W', 1}, {'W', 2}}},
    {{{'F', 0}, {'F', 1}, {'I', 0}, {'F', 2}, {'I', 1}, {'W', 0}, {'I', 2}, {'W', 1}, {'W', 2}}},
    {{{'F', 1}, {'F', 0}, {'I', 0}, {'W', 0}, {'I', 1}, {'F', 2}, {'W', 1}, {'I', 2}, {'W', 2}}},
}};

std::string order_text(std::span<const Step> order) {
  std::string out;
  for (const Step& step : order) out += text("{}{}{}", out.empty() ? "" : " ", step.pass, step.microbatch);
  return out;
}

void run_order(ModelRun& run, std::span<const Step> order) {
  for (const Step& step : order) {
    if (step.pass == 'F') run.forward(step.microbatch);
    if (step.pass == 'I') run.backward_input(step.microbatch);
    if (step.pass == 'W') run.backward_weight(step.microbatch);
  }
}

void orders_are_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape);
    expected.train();
    for (const auto& order : kOrders) {
      ModelRun run(subject, shape);
      run_order(run, order);
      expect_equal(report, shape, text("in the order {}", order_text(order)), run.results(), expected.results());
    }
  }
}

/// A whole backward: each layer's weight gradient directly follows its input gradient.
void whole_backwards_are_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), run(subject, shape);
    expected.train();
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
      run.forward(microbatch);
      for (std::size_t at = run.count(); at-- > 0;) {
        run.run(Pass::backward_input, at, microbatch);
        run.run(Pass::backward_weight, at, microbatch);
      }
    }
    expect_equal(report, shape, "if each layer's backward_weight follows its backward_input", run.results(),
                 expected.results());
  }
}

void repeated_forwards_are_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), run(subject, shape);
    for (ModelRun* const each : {&expected, &run}) each->forward();
    for (std::size_t at = run.count(); at-- > 0;) {
      if (run.model().is_block(at)) {
        const Tensors before = written_stash(run, at);
        for (const TensorView& view : run.views(at).stash) ModelRun::fill_bytes(view, kNaN);
        run.run(Pass::recompute, at);
        expect_equal(report, shape, "after forward() with LayerCall::again", written_stash(run, at), before);
      }
      for (ModelRun* const each : {&expected, &run}) {
        each->run(Pass::backward_input, at);
        each->run(Pass::backward_weight, at);
      }
    }
    expect_equal(report, shape, "with forward() again before the backwards", run.gradients(), expected.gradients());
  }
}

/// The stash of a layer without the tensors that it recomputes, and those.
struct CheapStash {
  Tensors kept, recomputed;
};

CheapStash cheap_stash(const ModelRun& run, std::size_t at, int microbatch, const CheapRecompute& cheap) {
  CheapStash out{written_stash(run, at, microbatch), {}};
  const std::string& layer = run.model().name(at);
  const auto& stash = run.model().specs(at).stash;
  for (const int index : cheap.recomputed_stash()) {
    if (index < 0 || static_cast<std::size_t>(index) >= stash.size())
      throw Error(text("{}: recomputed_stash() lists {}, but stash() has {} tensors", layer, index, stash.size()));
    const std::string name = text("{}, {}", layer, stash[static_cast<std::size_t>(index)].name);
    if (out.recomputed.contains(name)) throw Error(text("recomputed_stash() lists {} twice", name));
    const auto found = out.kept.find(name);
    if (found == out.kept.end()) throw Error(text("{} does not live from the forward to a backward", name));
    out.recomputed[name] = std::move(found->second);
    out.kept.erase(found);
  }
  return out;
}

/// The forwards of all microbatches are before the first backward: recompute() must not use what the last one left.
void cheap_recomputation_is_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), run(subject, shape);
    for (ModelRun* const each : {&expected, &run})
      for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) each->forward(microbatch);
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch)
      for (std::size_t at = run.count(); at-- > 0;) {
        recompute_cheaply(run, at, microbatch, report);
        for (ModelRun* const each : {&expected, &run}) {
          each->run(Pass::backward_input, at, microbatch);
          each->run(Pass::backward_weight, at, microbatch);
        }
      }
    expect_equal(report, shape, "with recompute() before the backwards", run.gradients(), expected.gradients());
  }
}

std::string unless_recomputed(const ModelSubject& subject) {
  return subject.support.recompute ? "" : "the model refuses recomputation";
}

void repeats_are_equal(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), other(subject, shape);
    expected.train();
    other.train();
    expect_equal(report, shape, "in another object", other.results(), expected.results());
    other.clear_gradients();
    other.train();
    expect_equal(report, shape, "in the second step", other.results(), expected.results());
  }
}

void forwards_may_repeat(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    const auto loss = [&run] {
      run.forward();
      return Tensors{{"the loss", bytes_of_tensor(run.views(run.count() - 1).out.front())}};
    };
    const Tensors expected = loss();
    run.settings().dropout = false;
    run.forward(1);
    run.settings().dropout = true;
    expect_equal(report, shape, "after an evaluation", loss(), expected);
  }
}

constexpr ModelCheck kOrderChecks[] = {
    {"Order.OfPassesChangesNoBit", "M11", nullptr, orders_are_equal},
    {"Order.WholeBackwardsHaveEqualBits", "M11", nullptr, whole_backwards_are_equal},
    {"Again.WritesTheSameStash", "M15", unless_recomputed, repeated_forwards_are_equal},
    {"CheapRecompute.WritesTheSameStash", "M28", unless_cheap, cheap_recomputation_is_equal},
    {"Repeats.HaveEqualBits", "M16", nullptr, repeats_are_equal},
    {"Repeats.MayHaveAnEvaluationBetween", "M16", nullptr, forwards_may_repeat},
};

} // namespace

void recompute_cheaply(ModelRun& run, std::size_t at, int microbatch, Report& report) {
  auto* const cheap = find_extension<CheapRecompute>(run.model().layer(at));
  if (!cheap) return;
  const ModelShape& shape = run.model().shape();
  const CheapStash before = cheap_stash(run, at, microbatch, *cheap);
  for (const int index : cheap->recomputed_stash())
    ModelRun::fill_bytes(run.views(at, microbatch).stash[static_cast<std::size_t>(index)], kNaN);
  run.recompute(*cheap, at, microbatch);
  const double flops = model_flops(run.kernels().calls());
  report.expect(flops == 0, "{}: recompute() of {} has matrix products of {} FLOPs", to_text(shape),
                run.model().name(at), flops);
  const CheapStash after = cheap_stash(run, at, microbatch, *cheap);
  expect_equal(report, shape, "after recompute()", after.recomputed, before.recomputed);
  expect_equal(report, shape, "after recompute(), of the kept stash", after.kept, before.kept);
}

std::string unless_cheap(const ModelSubject& subject) {
  const CreatedModel model(subject, most_precise_shape(subject));
  for (std::size_t at = 0; at < model.count(); ++at)
    if (find_extension<CheapRecompute>(model.layer(at))) return {};
  return "no layer offers CheapRecompute";
}

Tensors written_stash(const ModelRun& run, std::size_t at, int microbatch) {
  Tensors out;
  const auto& stash = run.model().specs(at).stash;
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (stash[i].life == Life::forward_to_input || stash[i].life == Life::forward_to_weight)
      out[text("{}, {}", run.model().name(at), stash[i].name)] = bytes_of_tensor(run.views(at, microbatch).stash[i]);
  return out;
}

std::span<const ModelCheck> order_checks() {
  return kOrderChecks;
}

} // namespace triax::conformance
