# Makes the numbers of docs/guide/r_users.md:  Rscript docs/r_users.R [PYTHON]
#
# It needs R with the packages reticulate and flexmix (Debian: r-cran-reticulate, r-cran-flexmix)
# and a Python in which moestat is installed, by default .venv/bin/python.

suppressMessages({library(reticulate); library(flexmix)})
given <- commandArgs(TRUE)
suppressWarnings(use_python(if (length(given)) given[1] else ".venv/bin/python", required = TRUE))
options(digits = 6, width = 80)

moestat <- import("moestat")
to_r <- function(frame)
  as.data.frame(frame$to_dict("list"), stringsAsFactors = TRUE, check.names = FALSE)

cat("\n## frames\n")
penguins <- to_r(moestat$datasets$load("penguins")$dropna())
str(penguins, vec.len = 2)
print(r_to_py(penguins)$dtypes)

cat("\n## formulas\n")
fit <- moestat$fit_formula("body_mass_g ~ flipper_length_mm + sex | bill_depth_mm",
                           penguins, n_experts = 2L, rng = 0L)
cat(fit$summary()$as_text(), "\n")

cat("\n## flexmix\n")
set.seed(1)
control <- list(iter.max = 20000, tolerance = 1e-12, minprior = 0)
fits <- lapply(1:10, function(i) flexmix(body_mass_g ~ flipper_length_mm + sex, penguins, k = 2,
  concomitant = FLXPmultinom(~ bill_depth_mm), control = control))
theirs <- fits[[which.max(sapply(fits, logLik))]]
order <- order(prior(theirs), decreasing = TRUE)
print(round(parameters(theirs)[, order], 2))
print(logLik(theirs), digits = 7)

cat("\n## back\n")
print(fit$llf, digits = 7)
table <- to_r(fit$tidy())
print(table[table$part == "expert", c("expert", "term", "estimate", "std_error")], digits = 4)
shares <- as.matrix(to_r(import("pandas")$DataFrame(fit$responsibilities)))
print(head(shares, 2), digits = 3)
cat("same cluster in",
    sum(max.col(shares) == match(clusters(theirs), order)), "of", nrow(penguins),
    "rows\n")

cat("\n## new\n")
new <- data.frame(flipper_length_mm = c(190, 215), bill_depth_mm = c(18, 15),
                  sex = factor(c("female", "male")))
print(fit$predict(new)$to_numpy())
print(to_r(fit$get_prediction(new)$summary_frame()), digits = 5)

cat("\n## select\n")
chosen <- moestat$select("gaussian", "body_mass_g ~ flipper_length_mm + sex | bill_depth_mm",
                         data = penguins, k = 1:3, rng = 0L)
print(chosen)
