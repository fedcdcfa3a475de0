#include "launch/train_here.hpp"

#include <system_error>
#include <thread>
#include <vector>

#include "control/local_store.hpp"
#include "train/plugins.hpp"

namespace triax::launch {

namespace {

class LocalRanks {
 public:
  explicit LocalRanks(const LocalTraining& training)
      : training_(training), layout_(train::layout_of(training.run)), stop_(training.signals) {}

  std::optional<train::LoopResult> train() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < layout_.world(); ++rank) {
      try {
        threads.emplace_back([this, rank] { run(rank); });
      } catch (const std::system_error& error) {
        failed(rank, Error(text("its thread could not be started: {}", error.what()), {},
                           "use fewer ranks, or allow this process more threads (ulimit -u)"));
        break;
      }
    }
    for (std::thread& thread : threads) thread.join();
    return abort_.raised() ? std::nullopt : result_;
  }

 private:
  /// The one place where what a rank throws is caught.
  void run(int number) noexcept {
    std::optional<train::Rank> rank; // goes after its failure has been told: the others must hear of that first
    try {
      train::RankOptions options = training_.options ? training_.options(number) : train::RankOptions{};
      options.threads = training_.placement.threads_per_rank();
      options.abort = &abort_;
      rank.emplace(training_.run, layout_, number, store_, log(number), options);
      const train::LoopResult result =
          train::run_loop(training_.run, *rank, stop_, number == 0 ? training_.reports : train::Reports{});
      if (number == 0) result_ = result;
    } catch (const Error& error) {
      failed(number, error);
    } catch (const std::exception& error) {
      failed(number, Error(error.what()));
    } catch (...) {
      failed(number, Error("an exception that is no std::exception"));
    }
  }

  void failed(int number, const Error& error) {
    const Error placed(error.message(), place(number, error.where()), error.hint());
    if (abort_.raise(number, error.what())) {
      log(number).error("{}", placed.what());
    } else {
      log(number).debug("stopped: {}", placed.what());
    }
  }

  /// "pipeline 0, data 1, tensor 0, step 118, 0F3"; a rank that is alone needs no coordinates.
  std::string place(int number, const std::string& where) const {
    if (layout_.world() == 1) return where;
    const auto at = [&](std::string_view axis) { return layout_.coordinate(number, axis); };
    const std::string rank = text("pipeline {}, data {}, tensor {}", at("pipeline"), at("data"), at("tensor"));
    return where.empty() ? rank : rank + ", " + where;
  }

  Log& log(int number) const { return *training_.logs[static_cast<std::size_t>(number)]; }

  const LocalTraining& training_;
  const Layout layout_;
  control::AbortFlag abort_;
  control::LocalStore store_;
  const control::AbortFlag::Listening store_listens_{abort_, store_};
  train::StopDecision stop_;
  std::optional<train::LoopResult> result_; // of rank 0
};

} // namespace

std::optional<train::LoopResult> train_here(const LocalTraining& training) {
  return LocalRanks(training).train();
}

} // namespace triax::launch
