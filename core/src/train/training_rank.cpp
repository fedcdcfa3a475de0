// SPDX-License-Identifier: Apache-2.0
// Constructs a rank (plugins, device, groups, state, executor, data), and runs its steps.
#include "train/training_rank.hpp"

#include <optional>

#include "base/caught_error.hpp"
#include "executor/executor.hpp"
#include "executor/parameter_gathers.hpp"
#include "os/cpu_quota.hpp"
#include "os/followed_folder.hpp"
#include "plugin/did_you_mean.hpp"
#include "train/agreement.hpp"
#include "train/corpus_content.hpp"
#include "train/dataset_source.hpp"
#include "train/evaluate.hpp"
#include "train/lr.hpp"
#include "train/nonfinite_origin.hpp"
#include "train/offload_file.hpp"
#include "train/plugin_states.hpp"
#include "train/position_text.hpp"
#include "train/program_digest.hpp"
#include "train/rank_groups.hpp"
#include "train/rank_setup.hpp"
#include "train/step_choices.hpp"
#include "train/step_trace.hpp"
#include "train/text_sample.hpp"
#include "train/wait_for_ranks.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

// Members are constructed in this order and destroyed in reverse.
struct Rank::Impl final : control::JobAbort::Listener {
  Impl(const config::RunConfig& config, const Layout& ranks, int this_rank, Store& shared, Log& to,
       const RankOptions& given)
      : run(config),
        layout(ranks),
        number(this_rank),
        options(given),
        store(shared),
        log(to),
        threads(given.threads > 0 ? given.threads : os::available_cores()),
        plugins(config, ranks, this_rank, threads, to),
        programs(chosen_programs(config, ranks, this_rank, plugins, schedule_of(config, plugins, given.schedule),
                                 shared, deadline_in(join_timeout_s()))),
        prepared(config, ranks, this_rank, plugins, programs),
        groups(config, layout, this_rank) {
    if (options.plugins_created) options.plugins_created();
    device = plugins.make_device({options.local_rank, options.local_ranks});
    device->set_default_timeout(wait_timeout_s());
    stream = device->make_stream("compute");
    if (run.log.timeline > 0 || options.records_timelines) {
      trace.emplace(prepared.training, run.log.timeline, device->kind() != DeviceKind::host, options.observer);
      trace->set_compute(*stream);
      run_folder.emplace(run.folder);
    }
    if (options.abort) listening.emplace(*options.abort, *this);
    try {
      start();
    } catch (...) {
      failed(caught_error());
      throw;
    }
  }

  /// Timeout of a rendezvous of the ranks. Slightly more than train.stall_timeout_s: if one rank is stuck and another
  /// waits for it, the watchdog names the first.
  double join_timeout_s() const { return run.train.stall_timeout_s + 2; }
  /// Timeout of waits that poll. A peer may work for longer than train.stall_timeout_s in many short operations.
  double wait_timeout_s() const { return options.waits_are_watched ? kNoTimeout : join_timeout_s(); }

  /// Called before the groups are destroyed: other ranks must see the cause first, not that a rank left.
  void failed(const Error& error) {
    if (options.failing) {
      options.failing(error);
    } else if (options.abort) {
      options.abort->raise(number, error.what());
    }
  }

  void start() {
    call_plugin("start", run.kernels.name.c_str(), [&] { plugins.kernels().start(*device); });
    if (layout.world_size() > 1)
      compare_programs(programs.training, number, run.schedule.name, store, deadline_in(join_timeout_s()));
    groups.join(plugins, *device, prepared.state->communicator_axes(layout), store, join_timeout_s(),
                trace ? &*trace : nullptr);
    const executor::Plan plan = supported_plan(run, prepared.plan(layout, number, plugins, programs));
    open_offloaded(run, number, plugins, *prepared.state);
    prepared.state->allocate(*device, *stream, plan.scratch);
    if (!run.evaluates) prepared.state->draw_weights(*device, *stream, run.train.seed, threads);
    groups.register_memory(prepared.state->blocks());
    walker = std::make_unique<executor::Executor>(
        executor::ExecutorParts{*device, *stream, plugins.kernels(), plugins.optimizer(), groups.groups(),
                                *prepared.state, prepared.training, prepared.evaluation, programs.assumptions},
        executor_settings(run, wait_timeout_s()));
    agreement.emplace(*device, *stream, groups.of_axes());
    if (!run.eval.sample.empty())
      text_sample.emplace(
          TextSample::Parts{run, layout, number, plugins, prepared, *device, *stream, groups, wait_timeout_s()});
    for (const executor::Parameter& of : prepared.state->parameters().all())
      parameters.push_back({of.name, of.spec, of.master, of.gradient, of.working, of.holds_part ? of.owned.first : 0,
                            of.scattered ? of.owned.first : 0, of.resharded ? of.owned.first : 0});
  }

  void abort(std::string_view why) noexcept override {
    device->abort_flag().raise(why); // first: waits throw this reason
    groups.abort(why);
  }

  /// After an executor::NonfiniteError, no stream waits for other ranks.
  template <class Body>
  auto noting_failure(Body body) {
    try {
      return body();
    } catch (const executor::NonfiniteError&) {
      throw;
    } catch (...) {
      has_failed = true;
      throw;
    }
  }

  /// The error `nonfinite` of this step (0: evaluation), with the first place of such a value.
  Error located(const Error& nonfinite, std::int64_t step) {
    const std::string key = text("nonfinite/{}", ++searches);
    NonfiniteOrigin origin;
    try {
      origin = noting_failure([&] {
        return nonfinite_origin({*walker, *device, *stream, step, plugins.model().count(), number, layout.world_size(),
                                 *agreement, store, key, wait_timeout_s()});
      });
    } catch (...) { // must not hide what it should explain
      if (device->abort_flag().raised()) throw;
      const Error error = caught_error();
      throw Error(text("{}; cannot find the first operation that gave it: {}", nonfinite.message(), error.what()),
                  nonfinite.where(), nonfinite.hint());
    }
    const bool was_read = origin.is_weight && has_read_weights && steps < first_step;
    return Error(text("{}; {}", nonfinite.message(), origin.text), nonfinite.where(),
                 was_read ? kOtherCheckpoint : nonfinite.hint());
  }

  void report_scale(const executor::StepOutcome& outcome, StepResult& result) {
    result.loss_scale = outcome.loss_scale;
    if (result.skipped)
      log.info("step {} is skipped: {} at loss scale {}; the next has {}", result.step, outcome.skipped,
               outcome.loss_scale, outcome.next_loss_scale);
    else if (outcome.next_loss_scale != outcome.loss_scale)
      log.debug("the loss scale grows to {} after step {}", outcome.next_loss_scale, result.step);
  }

  executor::BatchSource& source(const data::Corpora& corpora, executor::BatchSource* given,
                                std::unique_ptr<DatasetSource>& own) {
    if (!given && !own)
      own = std::make_unique<DatasetSource>(corpora, plugins.model().info().sequence, run.vocab, run.train.seed);
    return given ? *given : *own;
  }

  const config::RunConfig& run;
  const Layout layout;
  const int number;
  const RankOptions options;
  Store& store;
  Log& log;
  std::unique_ptr<Device> device; // outlives plugins and memory
  const int threads;              // CPU threads of this rank
  RankPlugins plugins;
  const Programs programs;
  Preparation prepared;
  std::optional<StepTrace> trace;               // of the step in log.timeline; streams refer to it
  std::optional<os::FollowedFolder> run_folder; // for the timeline: it may be moved while the run trains
  std::unique_ptr<Stream> stream;
  // These own memory that other ranks may read until the communicators are destroyed, if a step ends with an error.
  std::optional<Agreement> agreement;
  std::unique_ptr<executor::Executor> walker;
  std::optional<TextSample> text_sample;
  RankGroups groups;
  std::unique_ptr<DatasetSource> training, held_out;
  std::vector<RankParameter> parameters;
  RecordedTraffic recorded;
  std::int64_t steps = 0, first_step = 1, missing_timelines = 0, searches = 0;
  bool has_read_weights = false;
  bool has_failed = false;                               // a step or an evaluation has thrown
  std::optional<control::JobAbort::Listening> listening; // destroyed first
};

Rank::Rank(const config::RunConfig& run, const Layout& layout, int rank, Store& store, Log& log,
           const RankOptions& options)
    : impl_(std::make_unique<Impl>(run, layout, rank, store, log, options)) {}

/// The device may still run the optimizer of the last step, with memory of this rank. After a step that threw, its
/// stream may wait for other ranks. A captured step that is still running continues without its recording, and ends
/// when its communicators are aborted.
Rank::~Rank() {
  if (!impl_->has_failed) {
    try {
      impl_->walker->finish();
    } catch (...) { // a caller that wants to know calls finish()
    }
  }
  impl_->walker->release_recording(); // before the communicators, whose calls it may contain
}

void Rank::finish() {
  impl_->walker->finish();
}

StepResult Rank::step(const executor::Request& request) {
  Impl& rank = *impl_;
  const Clock::time_point began = Clock::now();
  const std::int64_t number = rank.steps + 1;
  const double lr = learning_rate(rank.run, number);
  executor::WalkObserver* observer = rank.trace ? &*rank.trace : rank.options.observer;
  const std::vector<CommStats> before = rank.run.train.cuda_graph ? rank.groups.counted() : std::vector<CommStats>{};
  const executor::StepOutcome outcome = rank.noting_failure([&] {
    return rank.walker->step(number, lr, request,
                             rank.source(rank.run.data.training, rank.options.training, rank.training), observer);
  });
  if (rank.run.train.cuda_graph) rank.recorded.add(outcome.ran, before, rank.groups.counted());
  std::optional<Error> nonfinite;
  if (outcome.nonfinite) nonfinite.emplace(rank.located(*outcome.nonfinite, number));
  if (nonfinite && rank.run.train.nonfinite == "stop") {
    rank.walker->stay_at_norm(number);
    throw executor::NonfiniteError(*nonfinite);
  }
  rank.steps = number;
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  if (rank.trace && number == rank.trace->step() &&
      !rank.trace->write(rank.run_folder->now(), rank.number, rank.layout.world_size(), rank.log))
    ++rank.missing_timelines;
  StepResult result{number, outcome.loss, outcome.grad_norm, lr, seconds, outcome.bubble_rate};
  result.request = outcome.request;
  result.skipped = !outcome.skipped.empty();
  result.nonfinite = nonfinite;
  if (rank.run.train.loss_scale) rank.report_scale(outcome, result);
  return result;
}

EvalResult Rank::evaluate() {
  return *evaluate_unless({}).result;
}

Rank::Evaluated Rank::evaluate_unless(const executor::Request& request) {
  return evaluate_samples(*this, impl_->run.eval.batches * impl_->run.batch.global, request);
}

SampledText Rank::sample(const executor::Request& request) {
  return impl_->noting_failure([&] { return impl_->text_sample.value().make(request); });
}

Rank::BatchLoss Rank::evaluate_batch(std::int64_t first, std::int64_t count, const executor::Request& request) {
  Impl& rank = *impl_;
  executor::BatchSource& source = rank.source(rank.run.data.validation, rank.options.held_out, rank.held_out);
  const auto evaluated = rank.noting_failure([&] { return rank.walker->evaluate(first, count, request, source); });
  if (evaluated.nonfinite) throw executor::NonfiniteError(rank.located(*evaluated.nonfinite, 0));
  return {evaluated.loss_sum, evaluated.request};
}

std::span<const RankParameter> Rank::parameters() const {
  impl_->walker->finish();
  return impl_->parameters;
}

const RankParameter& Rank::parameter(std::string_view name) const {
  std::vector<std::string> names;
  for (const RankParameter& parameter : parameters()) {
    if (parameter.name == name) return parameter;
    names.push_back(parameter.name);
  }
  const std::vector<std::string> near = plugin::nearest(name, names);
  throw Error(text("no parameter \"{}\"", name), {}, near.empty() ? "" : text("did you mean \"{}\"?", near.front()));
}

std::vector<executor::KeptTensor> Rank::kept() const {
  impl_->walker->finish();
  return impl_->prepared.state->kept();
}

checkpoint::TrainingState Rank::training_state() const {
  const StepScalars& last = impl_->walker->scalars();
  return {impl_->steps,
          next_sample(),
          last.step,
          static_cast<double>(last.loss_scale),
          last.good_steps,
          last.hysteresis,
          PluginStates(impl_->run, impl_->plugins).save()};
}

std::int64_t Rank::next_sample() const {
  return impl_->walker->first_sample(impl_->steps + 1);
}

checkpoint::DataContent Rank::data_content() const {
  const auto of = [](const std::unique_ptr<DatasetSource>& source) {
    return source ? content_of(source->dataset()) : std::vector<checkpoint::CorpusContent>();
  };
  return {of(impl_->training), of(impl_->held_out)};
}

void Rank::open_data() {
  impl_->source(impl_->run.data.training, impl_->options.training, impl_->training);
}

void Rank::load_plugins(const std::map<std::string, std::string>& states) {
  PluginStates(impl_->run, impl_->plugins).load(states);
}

void Rank::resume(const checkpoint::TrainingState& state) {
  impl_->steps = state.step;
  impl_->first_step = state.step + 1;
  StepScalars scalars;
  scalars.step = state.optimizer_steps;
  scalars.loss_scale = static_cast<float>(state.loss_scale);
  scalars.good_steps = state.good_steps;
  scalars.hysteresis = state.hysteresis;
  impl_->walker->resume(state.step, state.samples, scalars);
  weights_changed();
}

void Rank::weights_changed() {
  impl_->has_read_weights = true;
  executor::refresh_working(*impl_->prepared.state, *impl_->device, impl_->groups.groups(), *impl_->stream,
                            deadline_in(impl_->wait_timeout_s()));
}

void Rank::abort(std::string_view why) noexcept {
  impl_->abort(why);
}

std::int32_t Rank::agree(std::int32_t value) {
  return impl_->agreement->largest(value, deadline_in(impl_->wait_timeout_s()));
}

std::string Rank::position() const {
  const Impl& rank = *impl_;
  if (std::string of_text = rank.text_sample ? rank.text_sample->position() : ""; !of_text.empty()) return of_text;
  const auto pipeline_rank = [&rank](int index) {
    const Group group = rank.layout.group(rank.number, kPipelineAxis);
    return text("rank {} through {}", group.ranks[static_cast<std::size_t>(index)], rank.groups.plugin_of(group));
  };
  return position_text(rank.walker->position().snapshot(),
                       {[&rank](ActionId action) { return rank.groups.waiting_for(action); }, pipeline_rank});
}

std::int64_t Rank::steps_done() const {
  return impl_->steps;
}

std::int64_t Rank::sequence() const {
  return impl_->plugins.model().info().sequence;
}

std::int64_t Rank::global_batch() const {
  return impl_->run.batch.global;
}

bool Rank::computes() const {
  return impl_->plugins.kernels().computes();
}

Device& Rank::device() {
  return *impl_->device;
}

Stream& Rank::stream() {
  return *impl_->stream;
}

std::vector<report::GroupTraffic> Rank::traffic() const {
  return impl_->groups.traffic(impl_->recorded);
}

std::vector<MemoryRow> Rank::memory() const {
  const executor::RankState& state = *impl_->prepared.state;
  std::vector<MemoryRow> out = memory_rows(state.memory(state.scratch_bytes()), impl_->device->kind());
  if (impl_->text_sample)
    for (const MemoryRow& row : impl_->text_sample->memory()) out.push_back(row);
  return out;
}

executor::HostTraffic Rank::host_traffic() const {
  return impl_->prepared.state->host_traffic();
}

void Rank::record_timeline(std::int64_t step) {
  impl_->trace.value().set_step(step);
}

double Rank::flops_per_step() const {
  return impl_->plugins.model().flops_per_sample(impl_->run.vocab) * static_cast<double>(impl_->run.batch.global);
}

std::int64_t Rank::missing_timelines() const {
  return impl_->missing_timelines;
}

} // namespace triax::train
