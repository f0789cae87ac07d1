package report

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// tokenLifetime is how long a token is valid if all clocks agree.
	tokenLifetime = time.Minute
	// maxSkew is how much the clocks of the operator and a pod may differ. A token that is valid for longer reveals no
	// more than its report.
	maxSkew = 15 * time.Minute
	// signatureHeader carries the signature of an answer.
	signatureHeader = "Slurm-Operator-Signature"
)

// Purposes of the keys that are derived from the JWT key.
const (
	purposeRequest = "slurm-operator report request"
	purposeAnswer  = "slurm-operator report answer"
)

// derive returns a key for one purpose. It says nothing about the JWT key or about other derived keys, so a request
// can never be used as a token for Slurm, nor as an answer.
func derive(key []byte, purpose string) ([]byte, error) {
	if len(key) == 0 {
		return nil, errors.New("the JWT key is empty")
	}
	return hkdf.Key(sha256.New, key, nil, purpose, sha256.Size)
}

// sign returns a token for one report of the helper at an address. It contains a random value, so that each answer is
// for one request.
func sign(key []byte, audience string, now time.Time) (string, error) {
	derived, err := derive(key, purposeRequest)
	if err != nil {
		return "", err
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLifetime)),
	}).SignedString(derived)
}

// verify returns why a token does not allow to read a report, in words that do not contain the token.
func verify(key []byte, token, audience string, now time.Time) error {
	derived, err := derive(key, purposeRequest)
	if err != nil {
		return err
	}
	_, err = jwt.ParseWithClaims(token, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return derived, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(audience), jwt.WithIssuedAt(),
		jwt.WithExpirationRequired(), jwt.WithLeeway(maxSkew), jwt.WithTimeFunc(func() time.Time { return now }))
	switch {
	case err == nil:
		return nil
	case token == "":
		return errors.New("only the operator may read this; send a token that is signed with a key derived from the JWT key")
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return errors.New("the token was signed with another key; wait until this pod has the key of the cluster")
	case errors.Is(err, jwt.ErrTokenExpired), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("the token is more than %s too old or too new; synchronize the clocks", maxSkew)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return errors.New("the token is for another pod or another report; request one for this address")
	}
	return errors.New("this is no token for a report; only the operator may read this")
}

// seal returns the signature of the answer to a request.
func seal(key []byte, token string, body []byte) (string, error) {
	derived, err := derive(key, purposeAnswer)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, derived)
	_, _ = fmt.Fprintf(mac, "%s\n%s", token, body) // never fails; a token has no line breaks
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// audienceOf returns what a token is for: one report of the helper at an address (host:port).
func audienceOf(address, path string) (string, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", fmt.Errorf("parsing the address of a helper: %w", err)
	}
	return netip.AddrPortFrom(parsed.Addr().Unmap().WithZone(""), parsed.Port()).String() + path, nil
}

// localAddress returns the address that a client has connected to.
func localAddress(address any) string {
	if known, ok := address.(net.Addr); ok {
		return known.String()
	}
	return ""
}
