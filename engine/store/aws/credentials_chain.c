/* The order in which keys are looked for, and the roles that a profile assumes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"
#include "credentials_parts.h"

enum { ROLES_MAX = 16 };

/* ---- a profile ---- */

static bool has_static(const credentials_ask *a, const char *profile) {
  return profiles_text(a->files, profile, "aws_access_key_id") ||
         profiles_text(a->files, profile, "aws_secret_access_key");
}

static int take_static(const credentials_ask *a, const char *profile, profile_file file,
                       credentials *out, err *e) {
  const profiles *p = a->files;
  const struct {
    const char *key;
    char *to;
    size_t room;
  } wanted[] = {{"aws_access_key_id", out->access, sizeof out->access},
                {"aws_secret_access_key", out->secret, sizeof out->secret},
                {"aws_session_token", out->token, sizeof out->token}};
  for (int i = 0; i < 3; i++) {
    int rc = profiles_take(p, profiles_get(p, file, PROFILE_NAMED, profile, "", wanted[i].key),
                           wanted[i].to, wanted[i].room, e);
    if (rc < 0) return rc;
  }
  /* Keys are used as a pair: half of it from here and half from there would sign wrongly. */
  if (!*out->access != !*out->secret)
    return err_set(e, ERR_ACCESS, "%.300s: the profile \"%.100s\" has %s but no %s", p->path[file],
                   profile, *out->access ? "an access key" : "a secret key",
                   *out->access ? "secret key" : "access key");
  if (!*out->access) out->token[0] = 0; /* a token of nothing */
  snprintf(out->from, sizeof out->from, "a file of profiles");
  return *out->access != 0;
}

/* `aws login` keeps its keys in a way of its own. */
static int refuse_login(const credentials_ask *a, const char *profile, err *e) {
  if (!profiles_text(a->files, profile, "login_session")) return 0;
  return err_set(e, ERR_ACCESS,
                 "no keys for S3: the profile \"%.100s\" has login_session, which is not known "
                 "here; aws configure export-credentials --format env prints the keys that it "
                 "leads to",
                 profile);
}

/* Of a profile all but a role that it assumes. `variables`: those of the environment count. */
static int of_profile(const credentials_ask *a, const char *profile, bool variables,
                      credentials *out, err *e) {
  int rc = credentials_of_web(a, profile, variables, out, e);
  if (rc == 0) rc = credentials_of_sso(a, profile, out, e);
  if (rc == 0) rc = take_static(a, profile, PROFILE_KEYS, out, e);
  if (rc == 0) rc = refuse_login(a, profile, e);
  if (rc == 0) rc = credentials_of_process(a, profile, out, e);
  if (rc == 0) rc = take_static(a, profile, PROFILE_CONFIG, out, e);
  return rc;
}

/* ---- roles ---- */

static bool assumes_role(const credentials_ask *a, const char *profile) {
  return profiles_text(a->files, profile, "role_arn") &&
         !profiles_text(a->files, profile, "web_identity_token_file");
}

static int of_named_source(const credentials_ask *a, const char *profile, const char *source,
                           credentials *out, err *e) {
  char looked[CREDENTIALS_WHY_MAX] = "";
  int rc;
  /* The keys that the profile means are those of the process, if none are given for this store. */
  io plain = *a->io;
  if (!io_variable_laid(a->io, "AWS_ACCESS_KEY_ID")) plain.environment = NULL;
  if (strcasecmp(source, "Environment") == 0)
    rc = credentials_of_variables(&plain, out, e);
  else if (strcasecmp(source, "EcsContainer") == 0)
    rc = credentials_of_container(a, out, e);
  else if (strcasecmp(source, "Ec2InstanceMetadata") == 0)
    rc = credentials_of_instance(a, out, looked, e);
  else
    return err_set(e, ERR_ACCESS,
                   "the profile \"%.100s\": credential_source is %.60s, not Environment, "
                   "EcsContainer or Ec2InstanceMetadata",
                   profile, source);
  if (rc != 0) return rc;
  return err_set(e, ERR_ACCESS,
                 "the profile \"%.100s\": no keys in its credential_source %.60s%s%s", profile,
                 source, *looked ? ": " : "", looked);
}

/* ERR_ACCESS for what leads nowhere, or round in a circle. */
static int check_role(const credentials_ask *a, const char *profile, err *e) {
  const char *from = profiles_text(a->files, profile, "source_profile");
  const char *source = profiles_text(a->files, profile, "credential_source");
  const char *mfa = profiles_text(a->files, profile, "mfa_serial");
  const char *wrong = from && source     ? "has both source_profile and credential_source"
                      : !from && !source ? "has role_arn, but neither source_profile nor "
                                           "credential_source"
                      : mfa
                          ? "needs a code of an MFA device, and nobody is asked for one here; aws "
                            "configure export-credentials --format env prints keys"
                          : NULL;
  if (wrong) return err_set(e, ERR_ACCESS, "the profile \"%.100s\" %s", profile, wrong);
  if (!from || profiles_has(a->files, PROFILE_BOTH, from)) return 0;
  return err_set(e, ERR_ACCESS,
                 "the profile \"%.100s\": its source_profile \"%.100s\" is not there", profile,
                 from);
}

/* Follows the source profiles to the first that assumes no role. `chain` gets those that do, the
 * outermost first. A profile may be its own source, for the keys that it has. */
static int follow(const credentials_ask *a, const char *profile, const char *chain[ROLES_MAX],
                  size_t *count, const char **last, err *e) {
  *count = 0;
  *last = NULL;
  for (const char *at = profile; at;) {
    for (size_t i = 0; i < *count; i++)
      if (strcmp(chain[i], at) == 0)
        return err_set(e, ERR_ACCESS, "the profile \"%.100s\" is its own source_profile in the end",
                       at);
    if (*count == ROLES_MAX)
      return err_set(e, ERR_ACCESS, "the profile \"%.100s\": a chain of more than %d roles",
                     profile, ROLES_MAX);
    int rc = check_role(a, at, e);
    if (rc < 0) return rc;
    chain[(*count)++] = at;
    const char *from = profiles_text(a->files, at, "source_profile");
    if (from && (has_static(a, from) || !assumes_role(a, from))) {
      *last = from;
      return 0;
    }
    at = from;
  }
  return 0;
}

static int assume(const credentials_ask *a, const char *profile, credentials *out, err *e) {
  const credentials_role role = {
      .arn = profiles_text(a->files, profile, "role_arn"),
      .session = profiles_text(a->files, profile, "role_session_name"),
      .external_id = profiles_text(a->files, profile, "external_id"),
      .duration = profiles_text(a->files, profile, "duration_seconds"),
  };
  credentials *with = secret_alloc(sizeof *with);
  if (!with) return err_set(e, ERR_NOMEM, "no memory for keys");
  memcpy(with->access, out->access, sizeof with->access);
  memcpy(with->secret, out->secret, sizeof with->secret);
  memcpy(with->token, out->token, sizeof with->token);
  credentials_forget(out);
  int rc = credentials_of_role(a, &role, with, out, e);
  secret_free(with);
  return rc;
}

static int of_role(const credentials_ask *a, const char *profile, credentials *out, err *e) {
  const char *chain[ROLES_MAX] = {""}, *last = NULL;
  size_t count = 1;
  int rc = follow(a, profile, chain, &count, &last, e);
  if (rc < 0) return rc;
  const char *innermost = chain[count - 1];
  if (last)
    rc = of_profile(a, last, false, out, e);
  else
    rc = of_named_source(a, innermost, profiles_text(a->files, innermost, "credential_source"), out,
                         e);
  if (rc == 0)
    return err_set(e, ERR_ACCESS, "the source_profile \"%.100s\" has no keys", last ? last : "");
  while (rc > 0 && count > 0) rc = assume(a, chain[--count], out, e);
  return rc;
}

/* ---- all ---- */

static const char *shown(const char *path, const char *usual) {
  return *path ? path : usual;
}

static int none(const credentials_ask *a, const char *looked, err *e) {
  const profiles *p = a->files;
  bool there = profiles_has(p, PROFILE_BOTH, p->name);
  return err_set(e, ERR_ACCESS,
                 "no keys for S3: AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are not set; "
                 "the profile \"%.80s\" %s in %.200s and %.200s; %s%s%sAWS_NO_SIGN_REQUEST=1 goes "
                 "without keys",
                 p->name, there ? "has none" : "is not",
                 shown(p->path[PROFILE_KEYS], "~/.aws/credentials"),
                 shown(p->path[PROFILE_CONFIG], "~/.aws/config"),
                 looked ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set; the "
                          "instance's metadata: "
                        : "",
                 looked ? looked : "", looked ? "; " : "");
}

int credentials_of_chain(const credentials_ask *a, credentials *out, err *e) {
  const profiles *p = a->files;
  char looked[CREDENTIALS_WHY_MAX] = "";
  /* A profile that is given for this store alone comes before the keys of all. */
  int rc = credentials_of_variables(a->io, out, e);
  if (rc == 0 && assumes_role(a, p->name)) rc = of_role(a, p->name, out, e);
  if (rc == 0) rc = of_profile(a, p->name, true, out, e);
  if (rc == 0 && credentials_yes(credentials_variable(a->io, "AWS_NO_SIGN_REQUEST"))) {
    out->anonymous = true;
    snprintf(out->from, sizeof out->from, "none");
    return 1;
  }
  /* Who names a profile does not mean whatever the machine has. */
  if (rc == 0 && p->named && !profiles_has(p, PROFILE_BOTH, p->name)) return none(a, NULL, e);
  if (rc == 0) rc = credentials_of_container(a, out, e);
  if (rc == 0) rc = credentials_of_instance(a, out, looked, e);
  return rc == 0 ? none(a, looked, e) : rc;
}
