#include "launch/train_here.hpp"

#include <system_error>
#include <thread>
#include <vector>

#include "launch/train_rank.hpp"
#include "report/traffic.hpp"
#include "train/plugins.hpp"

namespace triax::launch {

namespace {

class LocalRanks {
 public:
  explicit LocalRanks(const LocalTraining& training)
      : training_(training),
        layout_(train::layout_of(training.run)),
        store_(training.store ? *training.store : own_store_),
        results_(static_cast<std::size_t>(layout_.world())) {}

  std::optional<train::LoopResult> train() {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < layout_.world(); ++rank) {
      try {
        threads.emplace_back([this, rank] { run(rank); });
      } catch (const std::system_error& error) {
        const Error why(text("the thread of rank {} could not be started: {}", rank, error.what()), {},
                        "use fewer ranks, or allow this process more threads (ulimit -u)");
        if (abort_.raise(rank, why.what())) log(rank).error("{}", why.what());
        break;
      }
    }
    for (std::thread& thread : threads) thread.join();
    return abort_.raised() ? std::nullopt : std::optional(together());
  }

 private:
  void run(int number) noexcept {
    train::RankOptions options = training_.options ? training_.options(number) : train::RankOptions{};
    options.threads = training_.placement.threads_per_rank();
    options.local_rank = number;
    options.local_ranks = layout_.world();
    const RankTraining rank{training_.run,
                            layout_,
                            number,
                            store_,
                            abort_,
                            log(number),
                            training_.signals,
                            number == 0 ? training_.reports : train::Reports{},
                            options,
                            [this, number](const train::LoopResult& own) { return finish(number, own); }};
    if (const auto result = train_rank(rank)) results_[static_cast<std::size_t>(number)] = *result;
  }

  train::LoopResult finish(int number, const train::LoopResult& own) {
    const std::string key = "launch/end";
    if (store_.add(key, 1) == layout_.world()) store_.set(key, "");
    try {
      store_.get(key, deadline_in(training_.run.train.stall_timeout_s));
    } catch (const Error&) {
      if (abort_.raised()) throw;
      throw Error(text("{} of {} ranks have come to their end, and rank {} waits for the others", store_.add(key, 0),
                       layout_.world(), number),
                  {}, "train.stall_timeout_s is how long ranks may take without progress");
    }
    return own;
  }

  train::LoopResult together() const {
    train::LoopResult out = results_.front();
    out.traffic.clear();
    for (const train::LoopResult& result : results_) report::add_traffic(out.traffic, result.traffic);
    return out;
  }

  Log& log(int number) const { return *training_.logs[static_cast<std::size_t>(number)]; }

  const LocalTraining& training_;
  const Layout layout_;
  control::AbortFlag abort_;
  control::LocalStore own_store_;
  control::LocalStore& store_;
  const control::AbortFlag::Listening store_listens_{abort_, store_};
  std::vector<train::LoopResult> results_; // by rank
};

} // namespace

std::optional<train::LoopResult> train_here(const LocalTraining& training) {
  return LocalRanks(training).train();
}

} // namespace triax::launch
