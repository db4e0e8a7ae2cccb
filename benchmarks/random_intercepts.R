# Random intercepts by lme4::glmer(nAGQ = 25), beside benchmarks/random_intercepts.py, which calls:
#   Rscript benchmarks/random_intercepts.R TABLE.csv
# The table has the columns set, family, id, x and y; a line of the output has set, log-likelihood,
# intercept, slope, standard deviation, processor seconds, and whether the optimiser was content.
# With several nodes glmer leaves out the log-likelihood of the saturated model, which is added.
suppressMessages(library(lme4))
rows <- read.csv(commandArgs(TRUE)[1])
fitted <- function(own) suppressMessages(suppressWarnings(
  glmer(y ~ x + (1 | id), own, family = own$family[1], nAGQ = 25)))
for (warm in c("binomial", "poisson"))
  if (any(rows$family == warm)) fitted(rows[rows$set == rows$set[rows$family == warm][1], ])
for (set in unique(rows$set)) {
  own <- rows[rows$set == set, ]
  began <- proc.time()
  fit <- fitted(own)
  seconds <- sum((proc.time() - began)[c("user.self", "sys.self")])
  saturated <- if (own$family[1] == "poisson") sum(dpois(own$y, own$y, log = TRUE)) else 0
  content <- length(fit@optinfo$conv$lme4) == 0
  cat(sprintf("%d %.10f %.10f %.10f %.10f %.3f %d\n", set, as.numeric(logLik(fit)) + saturated,
              fixef(fit)[1], fixef(fit)[2], sqrt(VarCorr(fit)[[1]][1]), seconds, content))
}
