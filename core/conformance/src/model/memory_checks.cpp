// SPDX-License-Identifier: Apache-2.0
// Memory that passes read and write, and when: old bytes, guards, lifetimes, streams, allocations.
#include <algorithm>
#include <utility>
#include <vector>

#include "dry_run_model.hpp"
#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

constexpr Pass kTrainingPasses[] = {Pass::forward, Pass::backward_input, Pass::backward_weight};

void reads_no_old_bytes(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), run(subject, shape);
    expected.train();
    run.poison(kNaN);
    for (int microbatch = 0; microbatch < ModelRun::kMicrobatches; ++microbatch) {
      run.forward(microbatch);
      run.fill_scratch(kNaN);
      run.backward_input(microbatch);
      run.fill_scratch(kNaN);
      run.backward_weight(microbatch);
    }
    expect_equal(report, shape, "if outputs, stash and scratch memory hold NaN before", run.results(),
                 expected.results());
  }
}

/// The tensors that a pass may write.
std::vector<TensorView> writable(const ModelRun& run, Pass pass, std::size_t at) {
  const LayerViews& views = run.views(at);
  std::vector<TensorView> out;
  const auto add = [&out](const std::vector<TensorView>& some) { out.insert(out.end(), some.begin(), some.end()); };
  if (pass == Pass::forward) add(views.out);
  if (pass == Pass::backward_input) add(views.din);
  if (pass != Pass::forward) add(views.grads);
  const auto& stash = run.model().specs(at).stash;
  for (std::size_t i = 0; i < stash.size(); ++i)
    if (exists_in(stash[i].life, pass)) out.push_back(views.stash[i]);
  return out;
}

void writes_only_its_tensors(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    run.poison(std::byte{0x11});
    for (std::size_t at = 0; at < run.count(); ++at) {
      run.fill_boundaries(at);
      for (const Pass pass : kTrainingPasses) {
        const auto before = run.everything();
        run.run(pass, at);
        for (const std::string& name : run.changed(before, writable(run, pass, at)))
          report.fail(text("{}: {} of {} writes to {}", to_text(shape), name_of(pass), run.model().name(at), name));
      }
    }
    for (const std::string& name : run.overwritten())
      report.fail(text("{}: a pass writes beside the memory of {}", to_text(shape), name));
  }
}

/// A tensor of a layer with its lifetime.
struct Lived {
  std::string name;
  TensorView view;
  Life life;
};

std::vector<Lived> tensors_with_lives(const ModelRun& run, std::size_t at) {
  std::vector<Lived> out;
  const LayerSpecs& specs = run.model().specs(at);
  for (std::size_t i = 0; i < specs.stash.size(); ++i)
    out.push_back({text("the stash tensor {}", specs.stash[i].name), run.views(at).stash[i], specs.stash[i].life});
  for (std::size_t i = 0; i < specs.inputs.size(); ++i)
    if (!is_data(specs.inputs[i]))
      out.push_back({text("the input {}", specs.inputs[i].name), run.views(at).in[i], specs.inputs[i].life});
  return out;
}

const char* text_of(Life life) {
  constexpr const char* kNames[] = {"forward_only", "forward_to_input", "forward_to_weight",
                                    "input_only",   "input_to_weight",  "sequence"};
  return kNames[static_cast<std::size_t>(life)];
}

/// The layer's results if one tensor holds NaN whenever it is outside of its lifetime.
Tensors results_without(ModelRun& run, std::size_t at, const Lived* lived) {
  run.fill_boundaries(at);
  run.clear_gradients();
  Tensors out;
  for (const Pass pass : kTrainingPasses) {
    run.run(pass, at);
    if (pass == Pass::forward) out = run.results_of(at); // the outputs
    const Pass next = pass == Pass::forward ? Pass::backward_input : Pass::backward_weight;
    if (lived && !exists_in(lived->life, next)) ModelRun::fill_bytes(lived->view, kNaN);
  }
  for (auto& [name, tensor] : run.results_of(at))
    if (name.find(", output ") == std::string::npos) out[name] = tensor;
  return out;
}

void lives_are_kept(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    for (std::size_t at = 0; at < run.count(); ++at) {
      const Tensors expected = results_without(run, at, nullptr);
      for (const Lived& lived : tensors_with_lives(run, at)) {
        const std::string of = text("{} of {}", lived.name, run.model().name(at));
        report.expect(lived.life != Life::sequence, "{}: {} is kept from call to call, which training does not do",
                      to_text(shape), of);
        expect_equal(report, shape, text("if {} holds NaN outside of its lifetime ({})", of, text_of(lived.life)),
                     results_without(run, at, &lived), expected);
      }
    }
  }
}

void views_may_be_empty(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun expected(subject, shape), run(subject, shape);
    expected.train();
    run.settings().as_engine = true;
    run.train();
    expect_equal(report, shape, "if views are empty outside of a tensor's lifetime", run.results(), expected.results());
  }
}

/// Writes what a pass reads, and fires the event that its stream waits for, in the third round of the progress loop.
class LateTensors final : public ProgressSource {
 public:
  LateTensors(ModelRun& run, std::size_t at) : run_(run), at_(at) { run.device().add_source(*this); }
  LateTensors(const LateTensors&) = delete;
  LateTensors& operator=(const LateTensors&) = delete;
  ~LateTensors() override { run_.device().remove_source(*this); }

  /// Runs a pass. Until its stream is ready, floating-point numbers are NaN, and tokens and targets are 0.
  void run(Pass pass) {
    const LayerViews& views = run_.views(at_);
    kept_.clear();
    hide(views.in);
    if (pass != Pass::backward_weight) hide(views.params);
    if (pass == Pass::backward_input) hide(views.dout);
    if (pass != Pass::forward)
      for (const std::vector<TensorView>* const read : {&views.stash, &views.grads}) hide(*read);
    rounds_ = 0;
    run_.stream().wait(blocker_.arm());
    run_.run(pass, at_);
  }
  void progress() noexcept override {
    if (blocker_.idle() || ++rounds_ != 3) return;
    for (const auto& [view, bytes] : kept_) std::ranges::copy(bytes, view.as<std::byte>());
    blocker_.fire();
  }

 private:
  void hide(const std::vector<TensorView>& views) {
    for (const TensorView& view : views) {
      if (view.empty()) continue;
      kept_.emplace_back(view, std::vector(view.as<std::byte>(), view.as<std::byte>() + view.bytes()));
      ModelRun::fill_bytes(view, is_floating(view.dtype()) ? kNaN : std::byte{0});
    }
  }

  ModelRun& run_;
  const std::size_t at_;
  std::vector<std::pair<TensorView, std::vector<std::byte>>> kept_;
  HostEvent blocker_;
  int rounds_ = 0;
};

void begins_after_its_stream(const ModelSubject& subject, Report& report) {
  const ModelShape shape = most_precise_shape(subject);
  ModelRun expected(subject, shape), run(subject, shape);
  for (std::size_t at = 0; at < run.count(); ++at) {
    expected.fill_boundaries(at);
    for (const Pass pass : kTrainingPasses) expected.run(pass, at);
    run.fill_boundaries(at);
    LateTensors late(run, at);
    for (const Pass pass : kTrainingPasses) late.run(pass);
    expect_equal(report, shape, "if earlier work of the stream writes what a pass reads", run.results_of(at),
                 expected.results_of(at));
  }
}

std::string unless_counted_allocations(const ModelSubject& subject) {
  return subject.allocations ? "" : "allocations are not counted in this program";
}

void expect_no_allocations(const ModelSubject& subject, ModelRun& run, Report& report) {
  for (int step = 0; step < 2; ++step) run.train();
  for (std::size_t at = 0; at < run.count(); ++at)
    if (run.model().has_pass(Pass::recompute, at)) run.run(Pass::recompute, at);
  for (const Pass pass : kEveryPass)
    for (std::size_t at = 0; at < run.count(); ++at) {
      if (!run.model().has_pass(pass, at)) continue;
      const std::size_t before = subject.allocations();
      run.run(pass, at);
      const std::size_t allocated = subject.allocations() - before;
      report.expect(allocated == 0, "{}: {} allocations in {} of {}, after two steps", to_text(run.model().shape()),
                    allocated, name_of(pass), run.model().name(at));
    }
}

void passes_do_not_allocate(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    expect_no_allocations(subject, run, report);
  }
}

void dry_run_does_not_allocate(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : parallel_shapes(subject)) {
    const CreatedModel model(subject, shape);
    RecordingKernels kernels(nullptr);
    DryRunModel dry_run(model, kernels);
    for (std::size_t at = 0; at < model.count(); ++at)
      for (const Pass pass : kEveryPass) {
        if (!model.has_pass(pass, at)) continue;
        kernels.clear();
        dry_run.tensor().clear();
        const std::size_t before = subject.allocations();
        dry_run.run(at, pass);
        const std::size_t allocated = subject.allocations() - before;
        report.expect(allocated == 0, "{}: {} allocations in the dry run of {} of {}", to_text(shape), allocated,
                      name_of(pass), model.name(at));
      }
  }
}

constexpr ModelCheck kMemoryChecks[] = {
    {"Passes.ReadNoOldBytes", "M12", nullptr, reads_no_old_bytes},
    {"Passes.WriteOnlyTheirTensors", "M13", nullptr, writes_only_its_tensors},
    {"Passes.UseTensorsInTheirLifeOnly", "M14", nullptr, lives_are_kept},
    {"Passes.TakeEmptyViewsOutsideOfALife", "M14", nullptr, views_may_be_empty},
    {"Passes.BeginAfterTheirStream", "M19", nullptr, begins_after_its_stream},
    {"SteadyState.DoesNotAllocate", "M20", unless_counted_allocations, passes_do_not_allocate},
    {"DryRun.DoesNotAllocate", "M20", unless_counted_allocations, dry_run_does_not_allocate},
};

} // namespace

std::span<const ModelCheck> memory_checks() {
  return kMemoryChecks;
}

} // namespace triax::conformance
