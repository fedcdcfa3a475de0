// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoints.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/caught_error.hpp"
#include "base/start_thread.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/tensor_writer.hpp"
#include "os/followed_folder.hpp"
#include "train/checkpoint_commit.hpp"
#include "train/checkpoint_load.hpp"
#include "train/host_kernels.hpp"
#include "train/saved_data.hpp"
#include "train/tokenizer_change.hpp"
#include "train/wait_for_ranks.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

using checkpoint::TensorData;
using executor::KeptTensor;

constexpr const char *kAttemptKey = "checkpoint/attempt", *kResumeKey = "checkpoint/resume";
// Values of kResumeKey, with the folder; empty: begin at step 1.
constexpr std::string_view kOfRun = "run ", kFrom = "from ";
constexpr std::chrono::milliseconds kPoll{50};

/// The kernel provides memory at its first use, which takes many times as long as a copy: a step must not wait for it.
void touch_pages(const Memory& memory, const std::atomic<bool>& stop) {
  constexpr std::size_t kPage = 4096;
  auto* const bytes = static_cast<std::byte*>(memory.data());
  for (std::size_t at = 0; at < memory.bytes() && !stop; at += kPage) bytes[at] = std::byte{0};
}

} // namespace

bool uses_staging(const config::RunConfig& run, DeviceKind device, bool computes) {
  if (!computes || run.evaluates) return false;   // nothing is saved
  if (run.memory.offload == "disk") return false; // training waits: a copy would need the memory that the file saves
  if (updates_on_host(run, device)) return false; // the same: the state is in the memory of the host
  return device != DeviceKind::host || (run.checkpoint.async && run.checkpoint.every > 0);
}

std::size_t staging_bytes(std::span<const KeptTensor> kept) {
  std::size_t out = 0;
  for (const KeptTensor& tensor : kept)
    out += static_cast<std::size_t>(tensor.saved.count) * bytes_of(tensor.view.dtype());
  return out;
}

struct Checkpoints::Impl {
  Impl(const config::RunConfig& config, const Layout& ranks, int this_rank, Rank& of, Store& shared, Log& to)
      : run(config),
        layout(ranks),
        number(this_rank),
        rank(of),
        store(shared),
        log(to),
        kept(of.kept()),
        run_folder(config.folder) {
    if (run.evaluates || !rank.computes()) return;
    if (number == 0) commit.emplace(run, layout, rank.sequence(), store, log);
    (void)rank.training_state(); // a plugin that cannot save its state must not fail at the first save
    attempt = agreed(kAttemptKey, [] { return new_attempt(); });
    prepare();
    writer =
        start_thread("the thread that writes checkpoints", [this] { return std::thread([this] { write_all(); }); });
  }

  ~Impl() {
    if (!writer.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      stop = ends = true;
    }
    changed.notify_all();
    writer.join();
  }

  /// The decision of rank 0, for all ranks.
  template <class Decide>
  std::string agreed(const char* key, const Decide& decide) {
    const ActivityScope wait(ActivityScope::Kind::wait, "waiting for a decision of rank 0 on checkpoints");
    if (number != 0) return wait_for_ranks([this, key] { return store.get(key, no_deadline()); });
    std::string value = decide();
    store.set(key, value);
    return value;
  }

  /// Allocates, and describes what this rank saves, once.
  void prepare() {
    if (uses_staging(run, rank.device().kind(), rank.computes())) {
      const bool pinned = rank.device().kind() != DeviceKind::host;
      staging = rank.device().allocate(staging_bytes(kept), pinned ? MemoryKind::pinned : MemoryKind::host);
      if (!pinned)
        touched = start_thread("the thread that provides memory for checkpoints", [this] {
          return std::async(std::launch::async, [this] { touch_pages(*staging, stop); });
        });
    }
    auto* next = staging ? static_cast<std::byte*>(staging->data()) : nullptr;
    for (const KeptTensor& tensor : kept) {
      if (tensor.saved.count == 0) continue;
      const TensorView view = saved_view(tensor);
      if (next) copies.emplace_back(TensorView(next, view.dtype(), view.shape()), view);
      const std::byte* data = next ? next : view.as<const std::byte>();
      (tensor.name == executor::kMasterName ? weights : states).push_back(saved_data(tensor, data));
      if (next) next += view.bytes();
    }
  }

  void save(Old old) {
    if (!writer.joinable()) return; // nothing is saved
    finish_writing(true);
    began = Clock::now();
    rank.finish();
    copy_to_staging();
    {
      const std::lock_guard lock(mutex);
      set_job();
      contents = rank.data_content();
      removes_old = old == Old::removed;
      ++saves;
      last_saved = checkpoint::folder_name(job->step);
    }
    changed.notify_all();
    if (!staging || !run.checkpoint.async) finish_writing(false);
  }

  /// With the mutex held. A plugin that fails makes this save fail, and training continues.
  void set_job() {
    state_error.clear();
    try {
      job = rank.training_state();
    } catch (...) {
      job = checkpoint::TrainingState{.step = rank.steps_done()};
      state_error = caught_error().what();
    }
  }

  void copy_to_staging() {
    if (copies.empty()) return;
    const ActivityScope phase(ActivityScope::Kind::engine, "copying the state for a checkpoint");
    if (touched.valid()) touched.get();
    Device& device = rank.device();
    for (const auto& [to, from] : copies) device.download(to, from, rank.stream());
    device.wait(rank.stream().record(), deadline_in(run.train.stall_timeout_s));
  }

  /// `is_next`: another save is due.
  void finish_writing(bool is_next) {
    std::unique_lock lock(mutex);
    if (!job) return;
    if (is_next && number == 0)
      log.info("the checkpoint of step {} is still being written: the next one waits for it", job->step);
    const ActivityScope wait(ActivityScope::Kind::wait, "waiting until a checkpoint is written");
    std::uint64_t seen = 0;
    while (job) {
      changed.wait_for(lock, kPoll);
      rank.device().abort_flag().check();
      // A rank whose disk hangs is found by its own watchdog.
      const bool progresses = blocks.load() != seen || (commit && commit->awaits_others());
      seen = blocks.load();
      if (RankActivity* const activity = RankActivity::current(); activity && progresses) activity->make_progress();
    }
  }

  /// The writer's thread.
  void write_all() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ends || job; });
      if (!job) return;
      const checkpoint::TrainingState state = *job;
      if (commit) commit->set_data(contents);
      lock.unlock();
      write(state);
      lock.lock();
      seconds = std::chrono::duration<double>(Clock::now() - began).count();
      job.reset();
      changed.notify_all();
    }
  }

  /// Other ranks report a failure to rank 0, which reports it.
  void write(const checkpoint::TrainingState& state) {
    try {
      std::string refused = "rank 0 has no folder for it";
      const std::filesystem::path chosen = commit ? choose_folder(refused) : await_folder(store, saves);
      const std::filesystem::path folder = checkpoint::partial_folder(chosen, state.step, attempt);
      const std::string& why = chosen.empty() ? refused : state_error;
      const PartOrError part = why.empty() ? written(folder, state) : PartOrError{{}, {}, why};
      if (commit) return commit->complete(folder, saves, state, part, removes_old, stop);
      try {
        publish(store, saves, number, part);
      } catch (...) { // too large for the store: rank 0 must not wait for it
        publish(store, saves, number, {{}, {}, caught_error().what()});
      }
    } catch (...) { // the store, after a failure of the job
      log.debug("{}", caught_error().what());
    }
  }

  /// The folder that rank 0 chooses for all ranks. Empty, with the reason, if there is none.
  std::filesystem::path choose_folder(std::string& refused) {
    std::filesystem::path out;
    try {
      commit->own_folder(run_folder);
      out = checkpoints();
    } catch (...) {
      refused = caught_error().what();
    }
    publish_folder(store, saves, out);
    return out;
  }

  PartOrError written(const std::filesystem::path& folder, const checkpoint::TrainingState& state) {
    const checkpoint::StopRequest gives_up = [this] {
      ++blocks;
      return stop.load();
    };
    try {
      std::error_code failed;
      std::filesystem::create_directories(folder, failed);
      if (failed)
        throw Error("cannot be created: " + failed.message(), folder.string(),
                    "allow this user to write to run.dir, or choose another");
      checkpoint::PartMerger out;
      out.add(write_tensors(folder, checkpoint::file_name("weights", number), weights, gives_up));
      out.add(write_tensors(folder, checkpoint::file_name("optimizer", number), states, gives_up));
      return {out.take(), checksums(state.plugins), {}};
    } catch (...) {
      return {{}, {}, caught_error().what()};
    }
  }

  std::string restore() {
    if (!rank.computes()) return {};
    const std::string decided = agreed(kResumeKey, [this] { return decision(); });
    if (decided.empty()) return {};
    continues_run = decided.starts_with(kOfRun);
    ResumePoint point{decided.substr(kFrom.size()), 0, run.checkpoint.load == "weights"};
    if (continues_run) point = {run.checkpoints() / decided.substr(kOfRun.size()), 0, run.evaluates, true};
    const checkpoint::Manifest manifest = read(point.folder, point.weights_only);
    if (point.weights_only && !run.evaluates) {
      rank.weights_changed();
    } else {
      (continues_run ? continued : restored) = continues_run ? point.folder.filename() : point.folder;
      rank.resume(manifest.training);
    }
    return number == 0 ? resumed_text(point, manifest) : std::string();
  }

  std::string resumed_text(const ResumePoint& point, const checkpoint::Manifest& manifest) {
    const bool accepts = run.checkpoint.changed_data == "accept"; // else a change was refused before the start
    if (accepts || (!point.weights_only && !manifest.data.training.empty())) rank.open_data();
    const checkpoint::DataContent data = rank.data_content();
    const std::string out = to_text(run, point, manifest, data);
    const auto change = accepts ? find_tokenizer_change(run, point.folder, manifest, data) : std::nullopt;
    return change ? out + "; " + change->text : out;
  }

  checkpoint::Manifest read(const std::filesystem::path& folder, bool weights_only) {
    const ActivityScope wait(ActivityScope::Kind::wait, "reading a checkpoint");
    return CheckpointLoad(run, layout, number, rank, kept).load(folder, weights_only);
  }

  std::optional<Rewound> rewind() {
    finish_writing(false);
    const std::string key = text("checkpoint/rewind/{}", ++rewinds);
    const std::filesystem::path folder = agreed(key.c_str(), [this] { return newest(); });
    if (folder.empty()) return std::nullopt;
    const std::int64_t samples = rank.next_sample(); // plugins save no state: it is replaced
    const checkpoint::Manifest manifest = read(folder, false);
    checkpoint::TrainingState state = manifest.training;
    state.samples = samples;
    rank.resume(state);
    return Rewound{folder, state.step, manifest.training.samples, samples};
  }

  std::string newest() const {
    const std::string& made = commit ? commit->newest() : last_saved;
    const std::string& name = made.empty() ? continued : made;
    return name.empty() ? restored : (checkpoints() / name).string();
  }

  /// The run's folder may be moved while it trains.
  std::filesystem::path checkpoints() const { return run_folder.now() / config::kCheckpointFolder; }

  std::string decision() const {
    for (const std::filesystem::path& folder : checkpoint::incomplete_in(run.checkpoints()))
      log.warn("{} is not used: it has no {}, so it is not complete", folder.string(), checkpoint::kManifestFile);
    const std::optional<ResumePoint> point = resume_point(run);
    if (!point) return {};
    return point->is_of_run ? std::string(kOfRun) + point->folder.filename().string()
                            : std::string(kFrom) + point->folder.string();
  }

  const config::RunConfig& run;
  const Layout& layout;
  const int number;
  Rank& rank;
  Store& store;
  Log& log;
  const std::vector<KeptTensor> kept;
  os::FollowedFolder run_folder;
  std::string attempt;
  std::optional<CheckpointCommit> commit; // on rank 0
  std::unique_ptr<Memory> staging;
  std::vector<std::pair<TensorView, TensorView>> copies; // to, from
  std::vector<TensorData> weights, states;
  std::int64_t rewinds = 0;
  bool continues_run = false; // restored from a checkpoint of this run
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> blocks{0}; // that have been written
  Clock::time_point began{};
  std::mutex mutex; // protects the members below
  std::condition_variable changed;
  std::optional<checkpoint::TrainingState> job; // being written
  checkpoint::DataContent contents;             // of the corpora that this rank has read
  std::string last_saved, continued;            // names in checkpoints(): of this start's last save, and before it
  std::string restored;                         // folder of another run
  std::string state_error;                      // why there is no state to save; written while there is no job
  std::int64_t saves = 0;                       // begun; written while there is no job
  bool removes_old = true;                      // after the last save; written while there is no job
  bool ends = false;
  double seconds = 0;
  std::future<void> touched; // before the first copy; uses `stop`
  std::thread writer;        // last: uses all others
};

Checkpoints::Checkpoints(const config::RunConfig& run, const Layout& layout, int rank, Rank& of, Store& store, Log& log)
    : impl_(std::make_unique<Impl>(run, layout, rank, of, store, log)) {}

Checkpoints::~Checkpoints() = default;

std::string Checkpoints::restore() {
  return impl_->restore();
}

std::optional<Checkpoints::Rewound> Checkpoints::rewind() {
  return impl_->rewind();
}

bool Checkpoints::continues_run() const {
  return impl_->continues_run;
}

bool Checkpoints::is_due(std::int64_t step) const {
  const std::int64_t every = impl_->run.checkpoint.every;
  return every > 0 && step % every == 0;
}

void Checkpoints::save(Old old) {
  impl_->save(old);
}

void Checkpoints::wait() {
  impl_->finish_writing(false);
}

double Checkpoints::last_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->seconds;
}

std::int64_t Checkpoints::missing() const {
  return impl_->commit ? impl_->commit->failed() : 0;
}

std::string Checkpoints::newest() const {
  return impl_->newest();
}

} // namespace triax::train
