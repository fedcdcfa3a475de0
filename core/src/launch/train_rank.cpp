#include "launch/train_rank.hpp"

namespace triax::launch {

namespace {

/// "pipeline 0, data 1, tensor 0, step 118, 0F3"; a rank that is alone needs no coordinates.
std::string place(const Layout& layout, int number, const std::string& where) {
  if (layout.world() == 1) return where;
  const auto at = [&](std::string_view axis) { return layout.coordinate(number, axis); };
  const std::string rank = text("pipeline {}, data {}, tensor {}", at("pipeline"), at("data"), at("tensor"));
  return where.empty() ? rank : rank + ", " + where;
}

class OneTraining {
 public:
  explicit OneTraining(const RankTraining& of) : of_(of) {}

  std::optional<train::LoopResult> train() {
    std::optional<train::Rank> rank; // goes after its failure has been told: the others must hear of that first
    std::optional<train::LoopResult> result;
    try {
      result = trained(rank);
    } catch (const Error& error) {
      failed(error);
    } catch (const std::exception& error) {
      failed(Error(error.what()));
    } catch (...) {
      failed(Error("an exception that is no std::exception"));
    }
    if (of_.made) of_.made(nullptr);
    return result;
  }

 private:
  std::optional<train::LoopResult> trained(std::optional<train::Rank>& rank) {
    train::RankOptions options = of_.options;
    options.abort = &of_.abort;
    options.failing = [this](const Error& error) { failed(error); };
    rank.emplace(of_.run, of_.layout, of_.number, of_.store, of_.log, options);
    if (of_.made) of_.made(&*rank);
    return of_.finish(train::run_loop(of_.run, *rank, of_.signals, of_.reports));
  }

  /// Once: a rank that fails while it is made has told before its groups go.
  void failed(const Error& error) {
    if (told_) return;
    told_ = true;
    const Error placed(error.message(), place(of_.layout, of_.number, error.where()), error.hint());
    const bool first = !of_.fails_first || of_.fails_first();
    if (of_.abort.raise(of_.number, error.what()) && first) {
      of_.log.error("{}", placed.what());
    } else {
      of_.log.debug("stopped: {}", placed.what());
    }
  }

  const RankTraining& of_;
  bool told_ = false;
};

} // namespace

std::optional<train::LoopResult> train_rank(const RankTraining& training) {
  return OneTraining(training).train();
}

} // namespace triax::launch
